// Ranges of addresses that a network namespace takes for its own.
#pragma once

#include <cstdint>

namespace belljar::linux {

// What stands for an allowed host inside the guest: 198.18.0.0/15 (benchmarks, RFC 2544) and fd53::/16 (unique local,
// RFC 4193) lead nowhere on the internet.
inline constexpr uint32_t kSyntheticV4 = 0xc6120000;
inline constexpr unsigned kSyntheticV4Bits = 15;
inline constexpr uint16_t kSyntheticV6 = 0xfd53;
inline constexpr unsigned kSyntheticV6Bits = 16;

// `ip route add local RANGE dev lo` for both ranges of this network namespace (rtnetlink(7), RTN_LOCAL): a connection
// to any address in them is answered by this namespace itself. One address of each becomes lo's own, since a resolver
// that is asked for addresses of configured families only does not count the loopback's (getaddrinfo(3),
// AI_ADDRCONFIG). Needs CAP_NET_ADMIN in the namespace's user namespace and an interface lo that is up. No heap,
// async-signal-safe. 0 or an errno value; `v6` tells whether the second range has its route, since a kernel may be
// without IPv6.
[[nodiscard]] int add_synthetic_routes(bool& v6);

}  // namespace belljar::linux
