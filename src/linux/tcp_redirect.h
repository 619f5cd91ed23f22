// Leading a network namespace's own TCP connections to one of its ports (nf_tables).
#pragma once

#include <cstdint>

namespace belljar::linux {

// In this network namespace: every new TCP connection to the synthetic ranges of linux/local_route.h, whatever its
// port, arrives at `port` of the loopback instead; SO_ORIGINAL_DST of the accepted socket tells where it was meant to
// go. The same as
//   table inet belljar { chain out { type nat hook output priority -100;
//     ip daddr 198.18.0.0/15 meta l4proto tcp redirect to :port; ip6 daddr fd53::/16 meta l4proto tcp redirect to :port
//     } }
// in one transaction. With `loopback_port` the same for that port of 127.0.0.1 and ::1. Needs CAP_NET_ADMIN in the
// namespace's user namespace and a kernel with nf_tables, nat for the inet family (Linux 5.2) and redirect; where they
// are modules the kernel loads them by itself, if it may. No heap, async-signal-safe. 0 or an errno value:
// EPROTONOSUPPORT without nfnetlink, EOPNOTSUPP or EINVAL without nf_tables, ENOENT without a part of it.
[[nodiscard]] int redirect_synthetic_tcp(uint16_t port, uint16_t loopback_port = 0);

}  // namespace belljar::linux
