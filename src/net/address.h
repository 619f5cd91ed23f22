// IP addresses as values, and which of them lie on the public internet.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace belljar::net {

class IpAddress {
 public:
  IpAddress() = default;  // 0.0.0.0
  static IpAddress v4(uint32_t host_order);
  static IpAddress v6(const std::array<uint8_t, 16>& bytes);
  // Four decimal parts without leading zeros, or RFC 4291 text without zone and brackets. Nothing else.
  static std::optional<IpAddress> parse(std::string_view text);
  // From AF_INET or AF_INET6; nothing for other families.
  static std::optional<IpAddress> from(const sockaddr* address);

  [[nodiscard]] bool is_v6() const { return v6_; }
  [[nodiscard]] uint32_t v4_value() const;                                          // host order; only when !is_v6()
  [[nodiscard]] const std::array<uint8_t, 16>& v6_bytes() const { return bytes_; }  // only when is_v6()
  [[nodiscard]] std::string text() const;                                           // RFC 5952, no brackets

  bool operator==(const IpAddress&) const = default;

 private:
  std::array<uint8_t, 16> bytes_{};  // an IPv4 address is in the first four
  bool v6_ = false;
};

struct Endpoint {
  IpAddress address;
  uint16_t port = 0;

  // Fills `out` and returns the length that connect(2) wants.
  [[nodiscard]] socklen_t to_sockaddr(sockaddr_storage& out) const;
  [[nodiscard]] std::string text() const;  // `192.0.2.1:80`, `[2001:db8::1]:80`
};

// What an address is for, by the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and its updates)
// and the registries of multicast and IPv6 address space. Only kGlobal is somebody's host on the internet.
enum class AddressClass : uint8_t {
  kGlobal,
  kUnspecified,    // 0.0.0.0/8 (connects to the host itself on Linux), ::
  kLoopback,       // 127/8, ::1
  kPrivate,        // RFC 1918
  kLinkLocal,      // 169.254/16 with the cloud metadata services, fe80::/10
  kSharedCgnat,    // 100.64/10, RFC 6598
  kProtocol,       // 192.0.0.0/24, 2001::/23 without Teredo: IETF protocol assignments
  kDocumentation,  // 192.0.2/24, 198.51.100/24, 203.0.113/24, 2001:db8::/32, 3fff::/20
  kBenchmark,      // 198.18/15, 2001:2::/48
  kMulticast,      // 224/4, ff00::/8
  kReserved,       // 240/4, and IPv6 space that IANA has not given out
  kBroadcast,      // 255.255.255.255
  kMapped,         // ::ffff:0:0/96 and the old ::/96: another way to write an IPv4 address
  kSixToFour,      // 192.88.99/24, 2002::/16: carries an IPv4 address
  kNat64,          // 64:ff9b::/96, 64:ff9b:1::/48: carries an IPv4 address
  kTeredo,         // 2001::/32: carries an IPv4 address
  kUniqueLocal,    // fc00::/7
  kSiteLocal,      // fec0::/10, deprecated by RFC 3879 and still routed by some
  kDiscard,        // 100::/64
  kCloudPlatform,  // 168.63.129.16: the platform channel of Azure, globally written but answered by the host
};

[[nodiscard]] AddressClass classify(const IpAddress& address);
[[nodiscard]] inline bool is_global(const IpAddress& address) {
  return classify(address) == AddressClass::kGlobal;
}
// For messages: "a loopback address".
[[nodiscard]] std::string_view describe(AddressClass address_class);

}  // namespace belljar::net
