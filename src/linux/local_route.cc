#include "linux/local_route.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>

#include "linux/netlink_request.h"

namespace belljar::linux {
namespace {

// lo is the first interface of every network namespace (LOOPBACK_IFINDEX in the kernel's net_namespace.h).
constexpr uint32_t kLoopback = 1;

template <size_t N>
void add_route(NetlinkRequest& request, uint8_t family, const std::array<uint8_t, N>& address, unsigned bits) {
  rtmsg route{};
  route.rtm_family = family;
  route.rtm_dst_len = static_cast<uint8_t>(bits);
  route.rtm_table = RT_TABLE_LOCAL;
  route.rtm_protocol = RTPROT_BOOT;
  route.rtm_scope = RT_SCOPE_HOST;
  route.rtm_type = RTN_LOCAL;
  request.begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, route);
  request.attribute(RTA_DST, address.data(), address.size());
  request.attribute(RTA_OIF, &kLoopback, sizeof kLoopback);
  request.end();
}

template <size_t N>
void add_address(NetlinkRequest& request, uint8_t family, const std::array<uint8_t, N>& address) {
  ifaddrmsg header{};
  header.ifa_family = family;
  header.ifa_prefixlen = N * 8;
  header.ifa_scope = RT_SCOPE_UNIVERSE;
  header.ifa_index = kLoopback;
  request.begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, header);
  request.attribute(IFA_LOCAL, address.data(), address.size());
  request.attribute(IFA_ADDRESS, address.data(), address.size());
  request.end();
}

}  // namespace

int add_synthetic_routes(bool& v6) {
  NetlinkRequest first;
  constexpr std::array<uint8_t, 4> kV4{kSyntheticV4 >> 24U, (kSyntheticV4 >> 16U) & 0xffU, 0, 0};
  add_route(first, AF_INET, kV4, kSyntheticV4Bits);
  constexpr std::array<uint8_t, 4> kOwnV4{kSyntheticV4 >> 24U, 19, 255, 254};
  add_address(first, AF_INET, kOwnV4);
  if (const int error = netlink_talk(NETLINK_ROUTE, first, 2)) return error;
  NetlinkRequest second;
  constexpr std::array<uint8_t, 16> kV6{kSyntheticV6 >> 8U, kSyntheticV6 & 0xffU};
  add_route(second, AF_INET6, kV6, kSyntheticV6Bits);
  std::array<uint8_t, 16> own = kV6;
  own[13] = 1;  // like kOwnV4: 198.18.0.0 + 0x1fffe
  own[14] = 0xff;
  own[15] = 0xfe;
  add_address(second, AF_INET6, own);
  v6 = netlink_talk(NETLINK_ROUTE, second, 2) == 0;
  return 0;
}

}  // namespace belljar::linux
