#include "net/original_destination.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>

namespace belljar::net {
namespace {

// linux/netfilter_ipv4.h and linux/netfilter_ipv6/ip6_tables.h, which cannot stand beside netinet/in.h.
constexpr int kOriginalDestination = 80;

}  // namespace

std::optional<Endpoint> original_destination(int socket) {
  for (const int level : {SOL_IP, SOL_IPV6}) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (::getsockopt(socket, level, kOriginalDestination, &address, &length) != 0) continue;
    const auto ip = IpAddress::from(reinterpret_cast<const sockaddr*>(&address));
    if (!ip) continue;
    uint16_t port = 0;
    // sin_port and sin6_port are at the same place in both structures.
    std::memcpy(&port, reinterpret_cast<const char*>(&address) + offsetof(sockaddr_in, sin_port), sizeof port);
    return Endpoint{*ip, ntohs(port)};
  }
  return {};
}

}  // namespace belljar::net
