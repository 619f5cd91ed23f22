#include "docker/fault_proxy.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

#include "base/io.h"
#include "tiers/docker/channel.h"
#include "tiers/docker/fake_engine.h"

namespace belljar::testing {
namespace {

std::string read_to_end(int fd) {
  std::string out;
  std::array<char, 16384> buffer{};
  for (ssize_t n = 0; (n = ::recv(fd, buffer.data(), buffer.size(), 0)) > 0;) {
    out.append(buffer.data(), static_cast<size_t>(n));
  }
  return out;
}

void send_all(int fd, std::string_view text);

std::string read_head(int fd) {
  std::string out;
  char byte = 0;
  while (!out.ends_with("\r\n\r\n") && ::read(fd, &byte, 1) == 1) out += byte;
  return out;
}

// Until either end has closed: an engine may hold on to one that belongs to a container which never started.
void pass_on(int from, int to) {
  std::array<char, 16384> buffer{};
  for (;;) {
    std::array<pollfd, 2> both{{{from, POLLIN, 0}, {to, 0, 0}}};
    if (::poll(both.data(), both.size(), -1) < 0 || (both[1].revents & (POLLHUP | POLLERR)) != 0) return;
    const ssize_t n = ::read(from, buffer.data(), buffer.size());
    if (n <= 0) return;
    send_all(to, {buffer.data(), static_cast<size_t>(n)});
  }
}

void send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

const char* fault_name(Fault fault) {
  static constexpr std::array kNames = {"none", "refused", "lost", "truncated", "late", "killed"};
  return kNames.at(static_cast<size_t>(fault));
}

void kill_family(pid_t pid) {
  const auto open = [](pid_t one) { return base::Fd(static_cast<int>(::syscall(SYS_pidfd_open, one, 0))); };
  std::vector<base::Fd> all;
  all.push_back(open(pid));
  // It makes no more children.
  (void)::kill(pid, SIGSTOP);
  std::istringstream children(read_text("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children"));
  for (pid_t child = 0; children >> child;) all.push_back(open(child));
  for (const base::Fd& one : all) {
    if (one) (void)::syscall(SYS_pidfd_send_signal, one.get(), SIGKILL, nullptr, 0);
  }
  for (const base::Fd& one : all) {
    pollfd wait{one.get(), POLLIN, 0};
    if (one) (void)::poll(&wait, 1, -1);
  }
}

FaultProxy::FaultProxy(std::string engine, Fault fault, size_t at, std::chrono::milliseconds late)
    : engine_(std::move(engine)), fault_(fault), at_(at), late_(late) {
  listener_ = base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket();
  if (path.size() >= sizeof address.sun_path) std::abort();
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 64) != 0) {
    std::abort();
  }
  server_ = std::thread(&FaultProxy::serve, this);
}

FaultProxy::~FaultProxy() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  server_.join();
  for (std::thread& carrier : carriers_) carrier.join();
}

std::vector<std::string> FaultProxy::requests() {
  std::vector<std::string> out;
  for (const Seen& one : seen()) out.push_back(one.line);
  return out;
}

std::vector<FaultProxy::Seen> FaultProxy::seen() {
  const std::lock_guard lock(mutex_);
  return seen_;
}

FaultProxy::Clock::duration FaultProxy::gave_up_after(std::string_view begun, Clock::time_point end) {
  const std::vector<Seen> all = seen();
  const auto first = std::ranges::find_if(all, [&](const Seen& one) { return one.line.contains(begun); });
  if (first == all.end()) return Clock::duration::max();
  return (at_ + 1 < all.size() ? all[at_ + 1].at : end) - first->at;
}

void FaultProxy::serve() {
  for (size_t number = 0;; ++number) {
    base::Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client) return;
    carriers_.emplace_back([this, number, fd = client.release()] { carry(base::Fd(fd), number); });
  }
}

void FaultProxy::carry(base::Fd client, size_t number) {
  const Fault fault = number == at_ ? fault_ : Fault::kNone;
  const std::string request = tiers::docker::read_request(client.get());
  {
    const std::lock_guard lock(mutex_);
    seen_.push_back({request.substr(0, request.find('\r')), Clock::now()});
  }
  if (fault == Fault::kRefused) return;
  const auto engine = tiers::docker::connect_to(engine_, base::Deadline::after(std::chrono::seconds(20)));
  if (!engine) return;
  // The engine's end is non-blocking.
  const int flags = 0;
  (void)::fcntl(engine->get(), F_SETFL, flags);
  send_all(engine->get(), request);
  // Of a connection that is handed over the answer is the head; the rest goes on as it comes.
  const bool handed_over = request.substr(0, request.find("\r\n\r\n")).contains("\r\nUpgrade: ");
  const std::string answer = handed_over ? read_head(engine->get()) : read_to_end(engine->get());
  if (fault == Fault::kLost) return;
  if (fault == Fault::kKilled) return kill_family(asker_.get_future().get());
  if (fault == Fault::kLate) {
    std::this_thread::sleep_for(late_);
    late_answer_came_ = true;
  }
  send_all(client.get(), fault == Fault::kTruncated ? std::string_view(answer).substr(0, answer.size() / 2) : answer);
  if (handed_over && fault == Fault::kNone) pass_on(engine->get(), client.get());
}

}  // namespace belljar::testing
