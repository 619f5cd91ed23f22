// Addresses that stand for allowed hosts inside the guest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "net/address.h"

namespace belljar::egress {

// Each host has one address of 198.18.0.0/15 and one of fd53::/16 (linux/local_route.h) as long as this lives; neither
// ever stands for another. Bounded, because below a wildcard a guest can invent hosts without end.
class SyntheticHosts {
 public:
  static constexpr size_t kLimit = 16384;

  struct Addresses {
    net::IpAddress v4;
    net::IpAddress v6;
  };
  // Those of `host`, a canonical name; new ones the first time. No value when there is no room for another host.
  [[nodiscard]] std::optional<Addresses> of(std::string_view host);
  // The host that `address` stands for; null when it stands for none. Valid until the next call of of().
  [[nodiscard]] const std::string* at(const net::IpAddress& address) const;
  // True when `address` is such that it could have been given to a host.
  [[nodiscard]] static bool may_stand(const net::IpAddress& address);
  // True when `address` is of one of the two ranges.
  [[nodiscard]] static bool in_range(const net::IpAddress& address);

 private:
  std::vector<std::string> hosts_;
  std::unordered_map<std::string, size_t> numbers_;
};

}  // namespace belljar::egress
