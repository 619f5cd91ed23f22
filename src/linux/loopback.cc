#include "linux/loopback.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

namespace belljar::linux {
namespace {

int bind_to(int fd, uint16_t port, bool v6) {
  sockaddr_storage address{};
  socklen_t length = sizeof(sockaddr_in);
  if (v6) {
    // The namespace inherits no setting of the host's, but a distribution may build another default.
    const int off = 0;
    if (::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) return errno;
    auto& in6 = reinterpret_cast<sockaddr_in6&>(address);
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    length = sizeof in6;
  } else {
    auto& in = reinterpret_cast<sockaddr_in&>(address);
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
  }
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0 ? 0 : errno;
}

// A bound socket of `type`, or -1 with the errno in `error`.
int bound_on_every_address(int type, uint16_t port, int& error) {
  for (const int family : {AF_INET6, AF_INET}) {
    const int fd = ::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
      error = errno;
      continue;
    }
    error = bind_to(fd, port, family == AF_INET6);
    if (error == 0) return fd;
    ::close(fd);
  }
  return -1;
}

}  // namespace

int bring_up_loopback() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", sizeof "lo");
  request.ifr_flags = IFF_UP;
  const int error = ::ioctl(fd, SIOCSIFFLAGS, &request) == 0 ? 0 : errno;
  ::close(fd);
  return error;
}

int listen_on_loopback(uint16_t port, int& listener) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(fd, SOMAXCONN) != 0) {
    const int error = errno;
    ::close(fd);
    return error;
  }
  listener = fd;
  return 0;
}

int listen_on_every_address(uint16_t port, int& listener) {
  int error = 0;
  const int fd = bound_on_every_address(SOCK_STREAM, port, error);
  if (fd < 0) return error;
  if (::listen(fd, SOMAXCONN) != 0) {
    error = errno;
    ::close(fd);
    return error;
  }
  listener = fd;
  return 0;
}

int bind_datagrams_on_every_address(uint16_t port, int& datagrams) {
  int error = 0;
  const int fd = bound_on_every_address(SOCK_DGRAM, port, error);
  if (fd < 0) return error;
  datagrams = fd;
  return 0;
}

}  // namespace belljar::linux
