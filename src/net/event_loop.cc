#include "net/event_loop.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/clock.h"

namespace belljar::net {
namespace {

// splice(2) to a socket that was reset raises SIGPIPE and, unlike send(2), has no flag against it: a guest could end
// this process by closing at the right moment. The signal goes to the calling thread, so this thread blocks it, and
// takes a pending one off before the mask is as it was.
class NoSigpipe {
 public:
  NoSigpipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;
  ~NoSigpipe() {
    const timespec now{};
    if (::sigismember(&before_, SIGPIPE) == 0) {
      while (::sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) continue;
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

uint64_t pack(uint32_t place, uint32_t turn) {
  return uint64_t{turn} << 32U | place;
}

}  // namespace

void Timer::arm(std::chrono::nanoseconds span) {
  const auto at = base::boot_now() + span;
  if (index_ == kIdle) {
    at_ = at;
    loop_.heap_.push_back(this);
    index_ = loop_.heap_.size() - 1;
    loop_.heap_up(index_);
    return;
  }
  at_ = at;
  loop_.heap_up(index_);
  loop_.heap_down(index_);
}

void Timer::disarm() {
  if (index_ == kIdle) return;
  const size_t hole = index_;
  index_ = kIdle;
  Timer* last = loop_.heap_.back();
  loop_.heap_.pop_back();
  if (last == this) return;
  loop_.heap_place(hole, last);
  loop_.heap_up(hole);
  loop_.heap_down(last->index_);
}

base::Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  base::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return base::system_error("epoll_create1", "", errno);
  base::Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return base::system_error("eventfd", "", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;  // the only registration without a watcher
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return base::system_error("epoll_ctl", "eventfd", errno);
  }
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll), std::move(wake)));
}

EventLoop::~EventLoop() {
  // Disposables may dispose of others while they go.
  while (!disposed_.empty()) {
    const auto last = std::exchange(disposed_, {});
  }
}

base::Status EventLoop::watch(int fd, uint32_t events, Watcher& watcher) {
  uint32_t place = 0;
  if (free_places_.empty()) {
    place = static_cast<uint32_t>(places_.size());
    places_.emplace_back();
  } else {
    place = free_places_.back();
    free_places_.pop_back();
  }
  epoll_event event{};
  event.events = events;
  event.data.u64 = pack(place, places_[place].turn);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    const int code = errno;
    free_places_.push_back(place);
    return base::system_error("epoll_ctl", "add", code);
  }
  places_[place].watcher = &watcher;
  watcher.place_ = place;
  return {};
}

base::Status EventLoop::change(int fd, uint32_t events, Watcher& watcher) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = pack(watcher.place_, places_[watcher.place_].turn);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) return base::system_error("epoll_ctl", "mod", errno);
  return {};
}

void EventLoop::forget(int fd, Watcher& watcher) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  forget_closing(watcher);
}

void EventLoop::forget_closing(Watcher& watcher) {
  if (const uint32_t place = std::exchange(watcher.place_, 0); place != 0) {
    places_[place].watcher = nullptr;
    ++places_[place].turn;
    free_places_.push_back(place);
  }
  if (!std::exchange(watcher.queued_, false)) return;
  std::replace(again_.begin(), again_.end(), &watcher, static_cast<Watcher*>(nullptr));
  std::replace(running_again_.begin(), running_again_.end(), &watcher, static_cast<Watcher*>(nullptr));
}

void EventLoop::again(Watcher& watcher) {
  if (!std::exchange(watcher.queued_, true)) again_.push_back(&watcher);
}

void EventLoop::dispose(std::unique_ptr<Disposable> object) {
  disposed_.push_back(std::move(object));
}

void EventLoop::stop() {
  stopping_.store(true);
  const uint64_t one = 1;
  // Async-signal- and thread-safe; a full counter (EAGAIN) means that a wake-up is pending anyway.
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
}

base::Status EventLoop::run() {
  const NoSigpipe no_sigpipe;
  while (!stopping_.exchange(false)) {
    const int n = ::epoll_wait(epoll_.get(), batch_.data(), static_cast<int>(batch_.size()), timeout());
    if (n < 0) {
      if (errno == EINTR) continue;
      return base::system_error("epoll_wait", "", errno);
    }
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) deliver(batch_[i]);
    fire_due_timers();
    run_again_list();
    while (!disposed_.empty()) {
      const auto gone = std::exchange(disposed_, {});
    }
  }
  return {};
}

// To whom it was meant for when the kernel gave it out; a callback before it may have ended that.
void EventLoop::deliver(const epoll_event& event) {
  const auto place = static_cast<uint32_t>(event.data.u64);
  if (place == 0) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = ::read(wake_.get(), &count, sizeof count);
    return;
  }
  const Place& meant = places_[place];
  if (meant.watcher == nullptr || meant.turn != event.data.u64 >> 32U) return;
  meant.watcher->on_events(event.events);
}

// epoll_wait(2) sleeps on CLOCK_MONOTONIC: after a suspend it wakes late by what was left, or at the first event, and
// then finds everything due on the boot clock.
int EventLoop::timeout() const {
  if (!again_.empty()) return 0;
  if (heap_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(heap_.front()->at_ - base::boot_now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
}

void EventLoop::fire_due_timers() {
  if (heap_.empty()) return;
  const auto now = base::boot_now();
  while (!heap_.empty() && heap_.front()->at_ <= now) {
    Timer* timer = heap_.front();
    timer->disarm();
    timer->alarm_.on_alarm();  // may destroy the timer
  }
}

void EventLoop::run_again_list() {
  running_again_.swap(again_);
  for (size_t i = 0; i < running_again_.size(); ++i) {
    Watcher* watcher = running_again_[i];
    if (watcher == nullptr) continue;
    running_again_[i] = nullptr;
    watcher->queued_ = false;  // it may ask again from inside the call
    watcher->on_events(0);
  }
  running_again_.clear();
}

void EventLoop::heap_place(size_t index, Timer* timer) {
  heap_[index] = timer;
  timer->index_ = index;
}

void EventLoop::heap_up(size_t index) {
  Timer* timer = heap_[index];
  while (index > 0) {
    const size_t parent = (index - 1) / 2;
    if (heap_[parent]->at_ <= timer->at_) break;
    heap_place(index, heap_[parent]);
    index = parent;
  }
  heap_place(index, timer);
}

void EventLoop::heap_down(size_t index) {
  Timer* timer = heap_[index];
  for (;;) {
    size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->at_ < heap_[child]->at_) ++child;
    if (timer->at_ <= heap_[child]->at_) break;
    heap_place(index, heap_[child]);
    index = child;
  }
  heap_place(index, timer);
}

}  // namespace belljar::net
