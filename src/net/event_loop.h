// A single-threaded epoll reactor: descriptors, timers on the boot clock, a thread-safe stop (docs/adr/0002).
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::net {

// Told what happened to a descriptor, one at a time. Called on the loop's thread only.
class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  // `events` are EPOLL* bits; 0 when the call was asked for by EventLoop::again().
  virtual void on_events(uint32_t events) = 0;
  virtual ~Watcher() = default;

 private:
  friend class EventLoop;
  uint32_t place_ = 0;   // among the loop's registrations; 0: none
  bool queued_ = false;  // in the list of again()
};

// Told that a timer is due.
class Alarm {
 public:
  virtual void on_alarm() = 0;

 protected:
  ~Alarm() = default;
};

// Whatever may destroy itself from inside its own callback: handed to EventLoop::dispose().
class Disposable {
 public:
  Disposable() = default;
  Disposable(const Disposable&) = delete;
  Disposable& operator=(const Disposable&) = delete;
  virtual ~Disposable() = default;
};

class EventLoop;

// One timer. Not armed when made; disarms itself when it goes. Must not outlive its loop.
class Timer {
 public:
  Timer(EventLoop& loop, Alarm& alarm) : loop_(loop), alarm_(alarm) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { disarm(); }

  // Due `span` from now on CLOCK_BOOTTIME; replaces an earlier setting.
  void arm(std::chrono::nanoseconds span);
  void disarm();
  [[nodiscard]] bool armed() const { return index_ != kIdle; }

 private:
  friend class EventLoop;
  static constexpr size_t kIdle = SIZE_MAX;

  EventLoop& loop_;
  Alarm& alarm_;
  std::chrono::nanoseconds at_{};
  size_t index_ = kIdle;  // place in the loop's heap
};

class EventLoop {
 public:
  // Costs one epoll and one eventfd descriptor, no thread.
  static base::Result<std::unique_ptr<EventLoop>> create();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop();

  // Watches `fd` for `events` (EPOLLIN | EPOLLET ...). The descriptor stays the caller's, who calls forget() before
  // the watcher goes.
  [[nodiscard]] base::Status watch(int fd, uint32_t events, Watcher& watcher);
  [[nodiscard]] base::Status change(int fd, uint32_t events, Watcher& watcher);
  // Nothing more is delivered to `watcher`, not even events already fetched from the kernel. `fd` must still be open.
  void forget(int fd, Watcher& watcher);
  // The same for an edge-triggered descriptor that the caller closes next, without a system call: the kernel lets go of
  // it with the last descriptor of its kind, and should another process have one, what happens there reaches nobody.
  void forget_closing(Watcher& watcher);

  // Calls watcher.on_events(0) once in the next round, after other descriptors had their turn.
  void again(Watcher& watcher);

  // Destroys `object` when the running callback has returned to the loop.
  void dispose(std::unique_ptr<Disposable> object);

  // Delivers events until stop(); may be called again. SIGPIPE is blocked for the calling thread meanwhile. Returns an
  // error only when epoll itself fails.
  base::Status run();

  // Ends the run() under way, or else the next one. The one member that other threads may call.
  void stop();

 private:
  friend class Timer;
  // What the kernel is given is a place and its turn, not an address: an event of a registration that is gone finds
  // nobody, whoever has the place by then.
  struct Place {
    Watcher* watcher = nullptr;
    uint32_t turn = 0;
  };

  EventLoop(base::Fd epoll, base::Fd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}
  void deliver(const epoll_event& event);

  [[nodiscard]] int timeout() const;
  void fire_due_timers();
  void run_again_list();
  void heap_place(size_t index, Timer* timer);
  void heap_up(size_t index);
  void heap_down(size_t index);

  base::Fd epoll_;
  base::Fd wake_;
  std::atomic<bool> stopping_ = false;
  std::array<epoll_event, 64> batch_{};
  std::vector<Place> places_{Place{}};  // the first is that of the wake-up
  std::vector<uint32_t> free_places_;
  std::vector<Timer*> heap_;  // binary heap by due time
  std::vector<Watcher*> again_;
  std::vector<Watcher*> running_again_;
  std::vector<std::unique_ptr<Disposable>> disposed_;
};

}  // namespace belljar::net
