#include "net/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace belljar::net {

base::Result<std::unique_ptr<Stream>> Stream::open(EventLoop& loop, base::Fd fd, StreamOwner& owner) {
  std::unique_ptr<Stream> stream(new Stream(loop, std::move(fd), owner));
  BELLJAR_TRY(loop.watch(stream->fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *stream));
  return stream;
}

Stream::~Stream() {
  if (fd_) loop_.forget_closing(*this);
}

void Stream::on_events(uint32_t events) {
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable_ = true;
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) writable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) peer_ended_ = true;
  if ((events & EPOLLERR) != 0) broken_ = true;
  owner_->on_stream(*this);
}

Stream::Transfer Stream::read(char* data, size_t size) {
  for (;;) {
    const ssize_t n = ::recv(fd_.get(), data, size, 0);
    if (n > 0) {
      if (static_cast<size_t>(n) < size && !peer_ended_) readable_ = false;
      return {Outcome::kDone, static_cast<size_t>(n)};
    }
    if (n == 0) return {Outcome::kEnd, 0};
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      readable_ = false;
      return {Outcome::kAgain, 0};
    }
    broken_ = true;
    return {Outcome::kBroken, 0};
  }
}

Stream::Transfer Stream::read_onto(std::string& text, size_t size) {
  Transfer got{};
  const size_t had = text.size();
  text.resize_and_overwrite(had + size, [&](char* data, size_t /*size*/) {
    got = read(data + had, size);
    return had + got.bytes;
  });
  return got;
}

Stream::Transfer Stream::write(std::string_view data, bool more) {
  for (;;) {
    const ssize_t n = ::send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (n >= 0) return {Outcome::kDone, static_cast<size_t>(n)};
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      writable_ = false;
      return {Outcome::kAgain, 0};
    }
    broken_ = true;
    return {Outcome::kBroken, 0};
  }
}

int Stream::connect_error() const {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

void Stream::shutdown_write() {
  ::shutdown(fd_.get(), SHUT_WR);
}

void Stream::reset_on_close() {
  if (broken_) return;  // there is nobody left to tell
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

base::Result<base::Fd> start_connect(const Endpoint& to) {
  sockaddr_storage address{};
  const socklen_t length = to.to_sockaddr(address);
  base::Fd fd(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return base::system_error("socket", to.text(), errno);
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A silent tunnel has no time limit; without probes one whose far end vanished would stay for ever (tcp(7)).
  ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 && errno != EINPROGRESS) {
    return base::system_error("connect", to.text(), errno);
  }
  return fd;
}

namespace {

using NameCall = int (*)(int, sockaddr*, socklen_t*);

base::Result<Endpoint> endpoint(std::string_view operation, NameCall call, int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (call(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return base::system_error(operation, "", errno);
  const auto ip = IpAddress::from(reinterpret_cast<const sockaddr*>(&address));
  if (!ip) return base::refuse(operation, "", "not an internet socket");
  uint16_t port = 0;
  // sin_port and sin6_port are at the same place in both structures.
  std::memcpy(&port, reinterpret_cast<const char*>(&address) + offsetof(sockaddr_in, sin_port), sizeof port);
  return Endpoint{*ip, ntohs(port)};
}

}  // namespace

base::Result<Endpoint> local_endpoint(int fd) {
  return endpoint("getsockname", [](int of, sockaddr* to, socklen_t* size) { return ::getsockname(of, to, size); }, fd);
}

base::Result<Endpoint> remote_endpoint(int fd) {
  return endpoint("getpeername", [](int of, sockaddr* to, socklen_t* size) { return ::getpeername(of, to, size); }, fd);
}

}  // namespace belljar::net
