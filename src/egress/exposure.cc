#include "egress/exposure.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <deque>
#include <mutex>
#include <utility>

#include "egress/accept_limits.h"
#include "egress/member.h"
#include "egress/relay.h"
#include "net/event_loop.h"
#include "net/stream.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71  // Linux 5.14
#endif

namespace belljar::egress {
namespace {

constexpr std::chrono::seconds kPatience{10};  // of a visitor, until the guest's server has taken the connection
constexpr int kBacklog = 128;

void turn_on(int socket, int level, int option) {
  const int on = 1;
  ::setsockopt(socket, level, option, &on, sizeof on);
}

void reset(base::Fd socket) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

// 0 where the kernel does not tell.
uint64_t namespace_of(int socket) {
  uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  return ::getsockopt(socket, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length) == 0 ? cookie : 0;
}

int option_of(int socket, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

net::Endpoint loopback(int family, uint16_t port) {
  std::array<uint8_t, 16> six{};
  six[15] = 1;
  return {family == AF_INET6 ? net::IpAddress::v6(six) : net::IpAddress::v4(INADDR_LOOPBACK), port};
}

base::Error refusal(uint16_t port, int code) {
  base::Error error;
  error.operation = "expose";
  error.subject = std::to_string(port);
  error.code = code;
  const std::string other =
      "--expose " + std::to_string(port < 1024 ? port + 8000 : port + 1) + ":" + std::to_string(port);
  if (code == EADDRINUSE) error.hint = "another program of this host has that port: take another, " + other;
  if (code == EACCES) error.hint = "ports below 1024 are root's: take another, " + other;
  return error;
}

// An invalid one when the host has no such address.
base::Result<base::Fd> listen_on(int family, uint16_t port) {
  base::Fd socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket && family == AF_INET6) return base::Fd();
  if (!socket) return std::unexpected(refusal(port, errno));
  turn_on(socket.get(), SOL_SOCKET, SO_REUSEADDR);  // connections of an earlier session may still be at their end
  if (family == AF_INET6) turn_on(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY);
  turn_on(socket.get(), IPPROTO_TCP, TCP_NODELAY);  // inherited by what is accepted
  sockaddr_storage address{};
  const socklen_t length = loopback(family, port).to_sockaddr(address);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (family == AF_INET6 && errno == EADDRNOTAVAIL) return base::Fd();
    return std::unexpected(refusal(port, errno));
  }
  if (::listen(socket.get(), kBacklog) != 0) return std::unexpected(refusal(port, errno));
  return socket;
}

class Visitor;

// What visitors share.
struct Hall {
  explicit Hall(net::EventLoop& its_loop) : loop(its_loop), company(its_loop) {}

  net::EventLoop& loop;
  PipePool pipes{64};
  Exposure::Ask ask;
  std::deque<Visitor*> waiting;  // for a socket each, in the order of the questions; null: has left
  uint64_t own_namespace = 0;
  Company company;  // last: tunnels give their pipes back
};

// Who has connected, until the guest's server has taken the connection.
class Visitor final : public Member, private net::StreamOwner, private net::Alarm {
 public:
  Visitor(Hall& hall, base::Fd socket, uint16_t port)
      : Member(hall.company), hall_(hall), socket_(std::move(socket)), port_(port), timer_(hall.loop, *this) {}
  ~Visitor() override {
    if (socket_) reset(std::move(socket_));
  }

  void enter() {
    timer_.arm(kPatience);
    ask(AF_INET);
  }

  void take(base::Fd socket) {
    if (left()) return;
    const bool good = socket && option_of(socket.get(), SO_DOMAIN) == family_ &&
                      option_of(socket.get(), SO_TYPE) == SOCK_STREAM &&
                      option_of(socket.get(), SO_PROTOCOL) == IPPROTO_TCP &&
                      (hall_.own_namespace == 0 || namespace_of(socket.get()) != hall_.own_namespace);
    if (!good) return failed();
    const int flags = ::fcntl(socket.get(), F_GETFL);
    ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
    turn_on(socket.get(), IPPROTO_TCP, TCP_NODELAY);
    sockaddr_storage address{};
    const socklen_t length = loopback(family_, port_).to_sockaddr(address);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 && errno != EINPROGRESS) {
      return failed();
    }
    auto stream = net::Stream::open(hall_.loop, std::move(socket), *this);
    if (!stream) return go();
    server_ = std::move(*stream);
  }

 private:
  void go() {
    std::ranges::replace(hall_.waiting, this, nullptr);
    leave();
  }

  void ask(int family) {
    family_ = family;
    if (!hall_.ask(family)) return go();
    hall_.waiting.push_back(this);
  }

  void failed() {
    server_.reset();
    if (family_ == AF_INET6) return go();
    ask(AF_INET6);
  }

  void on_stream(net::Stream& /*stream*/) override {
    if (left() || !server_ || !(server_->writable() || server_->broken())) return;
    if (server_->connect_error() != 0 || server_->broken()) {
      refused_ = std::move(server_);  // it is its own callback that this is
      return failed();
    }
    auto client = net::Stream::open(hall_.loop, std::move(socket_), *this);
    if (!client) return go();
    auto tunnel = std::make_unique<Tunnel>(hall_.company, hall_.pipes, std::move(*client), std::move(server_));
    Tunnel& joined = *tunnel;
    hall_.company.join(std::move(tunnel));
    go();
    joined.start();
  }

  void on_alarm() override { go(); }

  Hall& hall_;
  base::Fd socket_;
  uint16_t port_;
  int family_ = AF_UNSPEC;
  std::unique_ptr<net::Stream> server_;
  std::unique_ptr<net::Stream> refused_;
  net::Timer timer_;
};

class Door final : private net::Watcher, private net::Alarm {
 public:
  Door(Hall& hall, base::Fd listener, uint16_t guest_port)
      : hall_(hall), listener_(std::move(listener)), guest_port_(guest_port), pause_(hall.loop, *this) {}
  ~Door() override { hall_.loop.forget(listener_.get(), *this); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  base::Status open() { return hall_.loop.watch(listener_.get(), EPOLLIN, *this); }

 private:
  void on_events(uint32_t /*events*/) override {
    for (int i = 0; i < kAcceptBurst; ++i) {
      base::Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) {
        if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
        // The listener stays readable: without a pause this would spin until a descriptor is free.
        hall_.loop.forget(listener_.get(), *this);
        pause_.arm(kShortagePause);
        return;
      }
      if (hall_.company.size() >= Exposure::kMost) {
        reset(std::move(socket));
        continue;
      }
      auto visitor = std::make_unique<Visitor>(hall_, std::move(socket), guest_port_);
      Visitor& joined = *visitor;
      hall_.company.join(std::move(visitor));
      joined.enter();
    }
  }
  void on_alarm() override {
    if (!open()) pause_.arm(kShortagePause);
  }

  Hall& hall_;
  base::Fd listener_;
  uint16_t guest_port_;
  net::Timer pause_;
};

}  // namespace

class Exposure::Impl final : private net::Watcher {
 public:
  Impl(std::unique_ptr<net::EventLoop> loop, base::Fd wake)
      : loop_(std::move(loop)), wake_(std::move(wake)), hall_(*loop_) {}
  ~Impl() override { loop_->forget(wake_.get(), *this); }

  base::Status listen(const policy::ExposedPort& port) {
    for (const int family : {AF_INET, AF_INET6}) {
      BELLJAR_ASSIGN(base::Fd listener, listen_on(family, port.host));
      if (!listener) continue;
      hall_.own_namespace = namespace_of(listener.get());
      doors_.push_back(std::make_unique<Door>(hall_, std::move(listener), port.guest));
    }
    return {};
  }

  base::Status run(Ask ask) {
    hall_.ask = std::move(ask);
    BELLJAR_TRY(loop_->watch(wake_.get(), EPOLLIN, *this));
    for (const auto& door : doors_) BELLJAR_TRY(door->open());
    return loop_->run();
  }

  void give(base::Fd socket) {
    {
      const std::lock_guard lock(mutex_);
      given_.push_back(std::move(socket));
    }
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }
  void stop() { loop_->stop(); }

 private:
  void on_events(uint32_t /*events*/) override {
    uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
    std::deque<base::Fd> given;
    {
      const std::lock_guard lock(mutex_);
      given.swap(given_);
    }
    for (base::Fd& socket : given) {
      if (hall_.waiting.empty()) return;  // nobody has asked
      Visitor* visitor = hall_.waiting.front();
      hall_.waiting.pop_front();
      if (visitor != nullptr) visitor->take(std::move(socket));
    }
  }

  // In this order: what is below goes first, while what it refers to is still there.
  std::unique_ptr<net::EventLoop> loop_;
  base::Fd wake_;
  std::mutex mutex_;
  std::deque<base::Fd> given_;
  Hall hall_;
  std::vector<std::unique_ptr<Door>> doors_;
};

Exposure::Exposure(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Exposure::~Exposure() = default;

base::Result<std::unique_ptr<Exposure>> Exposure::create(const std::vector<policy::ExposedPort>& ports) {
  BELLJAR_ASSIGN(auto loop, net::EventLoop::create());
  base::Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return base::system_error("expose", "", errno);
  auto impl = std::make_unique<Impl>(std::move(loop), std::move(wake));
  for (const policy::ExposedPort& port : ports) BELLJAR_TRY(impl->listen(port));
  return std::unique_ptr<Exposure>(new Exposure(std::move(impl)));
}

base::Status Exposure::run(Ask ask) {
  return impl_->run(std::move(ask));
}
void Exposure::give(base::Fd socket) {
  impl_->give(std::move(socket));
}
void Exposure::stop() {
  impl_->stop();
}

}  // namespace belljar::egress
