#include "egress_load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "net/hello_bytes.h"

namespace belljar::bench {
namespace {

constexpr const char* kHost = "bench.example";

double now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

int open_connection(const Door& door, uint16_t service, int flags) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(door.port != 0 ? door.port : service);
  ::inet_pton(AF_INET, door.address.c_str(), &to.sin_addr);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 || errno == EINPROGRESS) return fd;
  ::close(fd);
  return -1;
}

std::string connect_request(uint16_t service) {
  const std::string authority = std::string(kHost) + ":" + std::to_string(service);
  return "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
}

bool send_all(int fd, std::string_view text) {
  return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

// Blocking; true when the way is open to the service itself.
bool pass_door(int fd, const Door& door, uint16_t service) {
  if (!door.connect) return true;
  if (!send_all(fd, connect_request(service))) return false;
  std::string head;
  while (!head.ends_with("\r\n\r\n")) {
    char byte = 0;
    if (::recv(fd, &byte, 1, 0) != 1) return false;
    head += byte;
  }
  return head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.0 200");
}

enum class Phase : uint8_t { kConnecting, kGreeted, kAsked };

struct Call {
  int fd = -1;
  Phase phase = Phase::kConnecting;
  std::string got;
  double started = 0;
};

class Caller {
 public:
  Caller(const Door& door, uint16_t service, size_t at_once)
      : door_(door), service_(service), calls_(at_once), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    for (Call& call : calls_) {
      if (call.fd >= 0) ::close(call.fd);
    }
    ::close(epoll_);
  }

  Rate run(double seconds) {
    const double start = now();
    for (Call& call : calls_) begin(call);
    std::array<epoll_event, 64> batch{};
    while (now() - start < seconds && failures_ < 1000) {
      const int n = ::epoll_wait(epoll_, batch.data(), static_cast<int>(batch.size()), 100);
      for (int i = 0; i < n; ++i) on_event(*static_cast<Call*>(batch[static_cast<size_t>(i)].data.ptr));
    }
    Rate rate;
    rate.per_second = static_cast<double>(times_.size()) / (now() - start);
    rate.failures = failures_;
    if (times_.empty()) return rate;
    std::ranges::sort(times_);
    rate.p50_ms = 1e3 * times_[times_.size() / 2];
    rate.p99_ms = 1e3 * times_[times_.size() * 99 / 100];
    return rate;
  }

 private:
  void begin(Call& call) {
    call = {open_connection(door_, service_, SOCK_NONBLOCK), Phase::kConnecting, {}, now()};
    if (call.fd < 0) {
      ++failures_;
      return;
    }
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.ptr = &call;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, call.fd, &event);
  }

  void finish(Call& call, bool good) {
    if (good) {
      times_.push_back(now() - call.started);
    } else {
      ++failures_;
    }
    ::close(call.fd);
    begin(call);
  }

  void on_event(Call& call) {
    if (call.phase == Phase::kConnecting) {
      if (!send_all(call.fd, door_.connect ? request_ : hello_)) return finish(call, false);
      call.phase = door_.connect ? Phase::kGreeted : Phase::kAsked;
      return;
    }
    for (;;) {
      std::array<char, 4096> buffer;
      const ssize_t n = ::recv(call.fd, buffer.data(), buffer.size(), 0);
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) return finish(call, n == 0 && call.phase == Phase::kAsked && call.got == "ok\n");
      call.got.append(buffer.data(), static_cast<size_t>(n));
      if (call.phase != Phase::kGreeted || !call.got.ends_with("\r\n\r\n")) continue;
      if (!call.got.starts_with("HTTP/1.1 200") && !call.got.starts_with("HTTP/1.0 200")) return finish(call, false);
      call.got.clear();
      call.phase = Phase::kAsked;
      if (!send_all(call.fd, hello_)) return finish(call, false);
    }
  }

  const Door& door_;
  uint16_t service_;
  std::vector<Call> calls_;
  int epoll_;
  std::string request_ = connect_request(service_);
  std::string hello_ = net::testing::hello_for(kHost);
  std::vector<double> times_;
  uint64_t failures_ = 0;
};

}  // namespace

double get_bytes(const Door& door, uint16_t service, size_t size) {
  const double start = now();
  const int fd = open_connection(door, service, 0);
  if (fd < 0) return -1;
  size_t got = 0;
  if (pass_door(fd, door, service) && send_all(fd, "GET /big HTTP/1.0\r\n\r\n")) {
    std::vector<char> buffer(size_t{256} << 10U);
    for (ssize_t n = 1; n > 0 && got < size; got += static_cast<size_t>(std::max<ssize_t>(n, 0))) {
      n = ::recv(fd, buffer.data(), buffer.size(), 0);
    }
  }
  ::close(fd);
  return got < size ? -1 : now() - start;
}

Rate connect_often(const Door& door, uint16_t service, double seconds, size_t at_once) {
  return Caller(door, service, at_once).run(seconds);
}

std::vector<int> hold(const Door& door, uint16_t service, size_t count) {
  std::vector<int> out;
  const std::string hello = net::testing::hello_for(kHost);
  while (out.size() < count) {
    const int fd = open_connection(door, service, 0);
    if (fd < 0) break;
    out.push_back(fd);
    if (!pass_door(fd, door, service) || !send_all(fd, hello)) break;
  }
  return out;
}

}  // namespace belljar::bench
