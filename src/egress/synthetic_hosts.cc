#include "egress/synthetic_hosts.h"

#include <array>

namespace belljar::egress {
namespace {

constexpr uint32_t kV4 = 0xc6120000;  // 198.18.0.0/15
constexpr uint32_t kV4Mask = 0xfffe0000;
constexpr uint8_t kV6First = 0xfd;  // fd53::/16
constexpr uint8_t kV6Second = 0x53;

// Last bytes 0 and 255 are left out: some programs take them for a network or a broadcast.
constexpr uint32_t kPerBlock = 254;

net::IpAddress v4_of(size_t number) {
  const auto n = static_cast<uint32_t>(number);
  return net::IpAddress::v4(kV4 + n / kPerBlock * 256 + n % kPerBlock + 1);
}

// The low four bytes are those of the IPv4 address without its range, so that the two can be told to belong together.
net::IpAddress v6_of(size_t number) {
  std::array<uint8_t, 16> bytes{kV6First, kV6Second};
  const uint32_t low = v4_of(number).v4_value() & ~kV4Mask;
  for (size_t i = 0; i < 4; ++i) bytes[12 + i] = static_cast<uint8_t>(low >> (8 * (3 - i)));
  return net::IpAddress::v6(bytes);
}

// SIZE_MAX for what is no host's place.
size_t number_of(uint32_t low) {
  const uint32_t last = low & 0xffU;
  if (last == 0 || last > kPerBlock) return SIZE_MAX;
  return size_t{low >> 8U} * kPerBlock + last - 1;
}

uint32_t low_bits(const net::IpAddress& address) {
  if (!address.is_v6()) return address.v4_value() & ~kV4Mask;
  uint32_t low = 0;
  for (size_t i = 12; i < 16; ++i) low = low << 8U | address.v6_bytes()[i];
  return low;
}

}  // namespace

std::optional<SyntheticHosts::Addresses> SyntheticHosts::of(std::string_view host) {
  std::string name(host);
  auto found = numbers_.find(name);
  if (found == numbers_.end()) {
    if (hosts_.size() >= kLimit) return {};
    found = numbers_.emplace(name, hosts_.size()).first;
    hosts_.push_back(std::move(name));
  }
  return Addresses{v4_of(found->second), v6_of(found->second)};
}

bool SyntheticHosts::in_range(const net::IpAddress& address) {
  if (!address.is_v6()) return (address.v4_value() & kV4Mask) == kV4;
  return address.v6_bytes()[0] == kV6First && address.v6_bytes()[1] == kV6Second;
}

bool SyntheticHosts::may_stand(const net::IpAddress& address) {
  return in_range(address) && number_of(low_bits(address)) != SIZE_MAX;
}

const std::string* SyntheticHosts::at(const net::IpAddress& address) const {
  if (!in_range(address)) return nullptr;
  const size_t number = number_of(low_bits(address));
  // One spelling only: fd53:1::1 is not fd53::1.
  if (number >= hosts_.size() || (address.is_v6() && v6_of(number) != address)) return nullptr;
  return &hosts_[number];
}

}  // namespace belljar::egress
