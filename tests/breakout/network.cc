// Ways to anything but the proxy, and ways to spoil the proxy's port (shared/cases/egress.md, E2 and E18).
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>

#include "breakout/hostile.h"

namespace hostile {
namespace {

uint16_t number(std::string_view name) {
  return static_cast<uint16_t>(std::atoi(fact(name).c_str()));
}

Outcome connect_to(const char* host, uint16_t port) {
  if (port == 0) return through("the test gave no port");
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, host, &address.sin_addr);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && errno != EINPROGRESS) {
    return held(strerrorname_np(errno));
  }
  pollfd wait{fd, POLLOUT, 0};
  if (::poll(&wait, 1, 2000) <= 0) return held("no answer");
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? through("connected") : held(strerrorname_np(error));
}

Outcome connect6(const char* host, uint16_t port) {
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  ::inet_pton(AF_INET6, host, &address.sin6_addr);
  return refused(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

Outcome send_to(const char* host) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  ::inet_pton(AF_INET, host, &address.sin_addr);
  return refused(::sendto(fd, "x", 1, 0, reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

Outcome connect_unix(const std::string& name, bool abstract) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + (abstract ? 1 : 0), sizeof address.sun_path - 2);
  const auto size = offsetof(sockaddr_un, sun_path) + name.size() + 1;
  return refused(::connect(fd, reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size)));
}

Outcome socket_of(long family, long type, long protocol = 0) {
  return refused(::syscall(SYS_socket, family, type, protocol));
}

Outcome take_port(int option) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  if (option != 0) ::setsockopt(fd, SOL_SOCKET, option, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(number("proxy"));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return refused_with(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), EADDRINUSE);
}

Outcome set_flags(const char* name, short flags) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  request.ifr_flags = flags;
  return refused(::ioctl(fd, SIOCSIFFLAGS, &request));
}

Outcome by_netlink(uint16_t type) {
  struct {
    nlmsghdr header;
    ifinfomsg link;
  } message{};
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = type;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
  message.link.ifi_index = 1;
  message.link.ifi_change = IFF_UP;
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return held(strerrorname_np(errno));
  if (::send(fd, &message, sizeof message, 0) < 0) return held(strerrorname_np(errno));
  std::array<char, 4096> answer{};
  if (::recv(fd, answer.data(), answer.size(), 0) < static_cast<ssize_t>(sizeof(nlmsghdr) + sizeof(nlmsgerr))) {
    return held("no answer");
  }
  nlmsgerr error{};
  std::memcpy(&error, answer.data() + sizeof(nlmsghdr), sizeof error);
  return error.error == 0 ? through("carried out") : held(strerrorname_np(-error.error));
}

// What the proxy answers to this CONNECT: the first line.
Outcome ask_proxy(const std::string& target) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(number("proxy"));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return through(std::string("no proxy: ") + strerrorname_np(errno));
  }
  const std::string request = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n";
  if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) return held(strerrorname_np(errno));
  std::array<char, 512> bytes{};
  const ssize_t size = ::recv(fd, bytes.data(), bytes.size() - 1, 0);
  if (size <= 0) return held("closed");
  const std::string line = std::string(bytes.data()).substr(0, 12);
  return line == "HTTP/1.1 200" ? through("the proxy connected") : held(line);
}

Outcome host_loopback_as(const std::string& spelling) {
  return ask_proxy(spelling + ":" + fact("port"));
}

const Attempt kAttempts[] = {
    {"host-loopback", [] { return connect_to("127.0.0.1", number("port")); }},
    {"host-loopback-other", [] { return connect_to("127.1.2.3", number("port")); }},
    {"host-any-address", [] { return connect_to("0.0.0.0", number("port")); }},
    {"host-loopback-6", [] { return connect6("::1", number("port")); }},
    {"host-loopback-mapped", [] { return connect6("::ffff:127.0.0.1", number("port")); }},
    {"host-address", [] { return connect_to(fact("address").c_str(), number("port")); }},
    {"metadata", [] { return connect_to("169.254.169.254", 80); }},
    {"metadata-6", [] { return connect6("fd00:ec2::254", 80); }},
    {"private-network", [] { return connect_to("10.0.0.1", 80); }},
    {"container-network", [] { return connect_to("172.17.0.1", 2375); }},
    {"public-address", [] { return connect_to("192.0.2.1", 443); }},
    {"public-address-6", [] { return connect6("2001:db8::1", 443); }},
    {"datagram-to-a-resolver", [] { return send_to("192.0.2.53"); }},
    {"datagram-to-all", [] { return send_to("255.255.255.255"); }},
    {"datagram-to-a-group", [] { return send_to("224.0.0.251"); }},
    {"abstract-socket-of-the-host", [] { return connect_unix(fact("abstract"), true); }},
    {"socket-of-the-host", [] { return connect_unix(fact("socket"), false); }},
    {"raw-ip", [] { return socket_of(AF_INET, SOCK_RAW, IPPROTO_ICMP); }},
    {"raw-ip-6", [] { return socket_of(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6); }},
    {"ping", [] { return socket_of(AF_INET, SOCK_DGRAM, IPPROTO_ICMP); }},
    {"ping-6", [] { return socket_of(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6); }},
    {"packet", [] { return socket_of(AF_PACKET, SOCK_RAW, 0x0300); }},
    {"packet-high-bits", [] { return socket_of(AF_PACKET | (1L << 32), SOCK_RAW, 0x0300); }},
    {"packet-of-old", [] { return socket_of(AF_INET, SOCK_PACKET, 0x0300); }},
    {"virtual-machine-socket", [] { return socket_of(AF_VSOCK, SOCK_STREAM); }},
    {"virtual-machine-socket-high-bits", [] { return socket_of(AF_VSOCK | (1L << 32), SOCK_STREAM); }},
    {"kernel-crypto", [] { return socket_of(AF_ALG, SOCK_SEQPACKET); }},
    {"bluetooth", [] { return socket_of(AF_BLUETOOTH, SOCK_RAW, 1); }},
    {"can", [] { return socket_of(AF_CAN, SOCK_RAW, 1); }},
    {"tipc", [] { return socket_of(AF_TIPC, SOCK_RDM); }},
    {"fast-path", [] { return socket_of(AF_XDP, SOCK_RAW); }},
    {"key-management", [] { return socket_of(AF_KEY, SOCK_RAW, 2); }},
    {"sctp", [] { return socket_of(AF_INET, SOCK_STREAM, IPPROTO_SCTP); }},
    {"netlink-of-the-firewall", [] { return socket_of(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER); }},
    {"netlink-of-the-firewall-high-bits",
     [] { return socket_of(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER | (1L << 32)); }},
    {"netlink-of-events", [] { return socket_of(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT); }},
    {"netlink-of-audit", [] { return socket_of(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT); }},
    {"netlink-of-sockets", [] { return socket_of(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG); }},
    {"pair-of-another-family",
     [] {
       std::array<int, 2> pair{};
       return refused(::socketpair(AF_TIPC, SOCK_STREAM, 0, pair.data()));
     }},
    {"loopback-down", [] { return set_flags("lo", 0); }},
    {"loopback-down-by-netlink", [] { return by_netlink(RTM_NEWLINK); }},
    {"new-address-by-netlink", [] { return by_netlink(RTM_NEWADDR); }},
    {"new-route-by-netlink", [] { return by_netlink(RTM_NEWROUTE); }},
    {"new-route",
     [] {
       rtentry route{};
       route.rt_flags = RTF_UP;
       route.rt_dst.sa_family = AF_INET;
       return refused(::ioctl(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), SIOCADDRT, &route));
     }},
    {"take-the-proxy-port", [] { return take_port(0); }},
    {"take-the-proxy-port-reusing-address", [] { return take_port(SO_REUSEADDR); }},
    {"take-the-proxy-port-reusing-port", [] { return take_port(SO_REUSEPORT); }},
    {"transparent",
     [] {
       const int one = 1;
       return refused(::setsockopt(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), SOL_IP, 19, &one, sizeof one));
     }},
    {"mark",
     [] {
       const int one = 1;
       return refused(
           ::setsockopt(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), SOL_SOCKET, SO_MARK, &one, sizeof one));
     }},
    {"low-port",
     [] {
       sockaddr_in address{};
       address.sin_family = AF_INET;
       address.sin_port = htons(80);
       return refused(::bind(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                             reinterpret_cast<const sockaddr*>(&address), sizeof address));
     }},
    {"proxy-to-loopback", [] { return host_loopback_as("127.0.0.1"); }},
    {"proxy-to-loopback-by-name", [] { return host_loopback_as("localhost"); }},
    {"proxy-to-loopback-6", [] { return host_loopback_as("[::1]"); }},
    {"proxy-to-loopback-mapped", [] { return host_loopback_as("[::ffff:127.0.0.1]"); }},
    {"proxy-to-loopback-short", [] { return host_loopback_as("127.1"); }},
    {"proxy-to-loopback-decimal", [] { return host_loopback_as("2130706433"); }},
    {"proxy-to-loopback-hexadecimal", [] { return host_loopback_as("0x7f000001"); }},
    {"proxy-to-loopback-octal", [] { return host_loopback_as("0177.0.0.1"); }},
    {"proxy-to-any-address", [] { return host_loopback_as("0.0.0.0"); }},
    {"proxy-to-metadata", [] { return ask_proxy("169.254.169.254:80"); }},
    {"proxy-to-itself", [] { return ask_proxy("127.0.0.1:" + fact("proxy")); }},
    {"proxy-to-a-denied-host", [] { return ask_proxy("denied.invalid:443"); }},
};

}  // namespace

std::span<const Attempt> network_attempts() {
  return kAttempts;
}

}  // namespace hostile
