// The loopback interface of a fresh network namespace, and the one listener made in it.
#pragma once

#include <cstdint>

namespace belljar::linux {

// Both are for the guest's side of a launch: no heap, async-signal-safe, 0 or an errno value.

// Sets IFF_UP on `lo` (netdevice(7)); the kernel then gives it 127.0.0.1/8 and ::1.
[[nodiscard]] int bring_up_loopback();

// A non-blocking TCP listener on 127.0.0.1:`port`. A socket belongs to the network namespace it was made in, whoever
// accepts on it later.
[[nodiscard]] int listen_on_loopback(uint16_t port, int& listener);

// The same on every address of the network namespace, IPv6 and IPv4 in one socket (IPV6_V6ONLY off, ipv6(7)); of IPv4
// alone where the kernel is without IPv6.
[[nodiscard]] int listen_on_every_address(uint16_t port, int& listener);

// A non-blocking UDP socket on every address, likewise.
[[nodiscard]] int bind_datagrams_on_every_address(uint16_t port, int& datagrams);

}  // namespace belljar::linux
