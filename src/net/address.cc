#include "net/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace belljar::net {
namespace {

struct Block4 {
  uint32_t prefix;
  uint32_t bits;
  AddressClass address_class;
};

constexpr uint32_t quad(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a << 24U | b << 16U | c << 8U | d;
}

// First match wins.
constexpr std::array kBlocks4 = {
    Block4{quad(0, 0, 0, 0), 8, AddressClass::kUnspecified},
    Block4{quad(10, 0, 0, 0), 8, AddressClass::kPrivate},
    Block4{quad(100, 64, 0, 0), 10, AddressClass::kSharedCgnat},
    Block4{quad(127, 0, 0, 0), 8, AddressClass::kLoopback},
    Block4{quad(168, 63, 129, 16), 32, AddressClass::kCloudPlatform},
    Block4{quad(169, 254, 0, 0), 16, AddressClass::kLinkLocal},
    Block4{quad(172, 16, 0, 0), 12, AddressClass::kPrivate},
    Block4{quad(192, 0, 0, 0), 24, AddressClass::kProtocol},
    Block4{quad(192, 0, 2, 0), 24, AddressClass::kDocumentation},
    Block4{quad(192, 88, 99, 0), 24, AddressClass::kSixToFour},
    Block4{quad(192, 168, 0, 0), 16, AddressClass::kPrivate},
    Block4{quad(198, 18, 0, 0), 15, AddressClass::kBenchmark},
    Block4{quad(198, 51, 100, 0), 24, AddressClass::kDocumentation},
    Block4{quad(203, 0, 113, 0), 24, AddressClass::kDocumentation},
    Block4{quad(224, 0, 0, 0), 4, AddressClass::kMulticast},
    Block4{quad(255, 255, 255, 255), 32, AddressClass::kBroadcast},
    Block4{quad(240, 0, 0, 0), 4, AddressClass::kReserved},
};

struct Block6 {
  std::array<uint8_t, 16> prefix;
  uint32_t bits;
  AddressClass address_class;
};

// First match wins. 2000::/3 is the only space given out as global unicast, so what no line names is reserved.
constexpr std::array kBlocks6 = {
    Block6{{}, 128, AddressClass::kUnspecified},
    Block6{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, AddressClass::kLoopback},
    Block6{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, AddressClass::kMapped},
    Block6{{}, 96, AddressClass::kMapped},
    Block6{{0x00, 0x64, 0xff, 0x9b}, 96, AddressClass::kNat64},
    Block6{{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, AddressClass::kNat64},
    Block6{{0x01, 0x00}, 64, AddressClass::kDiscard},
    Block6{{0x20, 0x01, 0x00, 0x00}, 32, AddressClass::kTeredo},
    Block6{{0x20, 0x01, 0x00, 0x02, 0x00, 0x00}, 48, AddressClass::kBenchmark},
    Block6{{0x20, 0x01, 0x00, 0x00}, 23, AddressClass::kProtocol},
    Block6{{0x20, 0x01, 0x0d, 0xb8}, 32, AddressClass::kDocumentation},
    Block6{{0x20, 0x02}, 16, AddressClass::kSixToFour},
    Block6{{0x3f, 0xff, 0x00}, 20, AddressClass::kDocumentation},
    Block6{{0x20}, 3, AddressClass::kGlobal},
    Block6{{0xfc}, 7, AddressClass::kUniqueLocal},
    Block6{{0xfe, 0x80}, 10, AddressClass::kLinkLocal},
    Block6{{0xfe, 0xc0}, 10, AddressClass::kSiteLocal},
    Block6{{0xff}, 8, AddressClass::kMulticast},
};

bool in_block(const std::array<uint8_t, 16>& address, const Block6& block) {
  const size_t whole = block.bits / 8;
  if (!std::equal(address.begin(), address.begin() + static_cast<ptrdiff_t>(whole), block.prefix.begin())) return false;
  const uint32_t rest = block.bits % 8;
  if (rest == 0) return true;
  const uint32_t mask = 0xffU << (8U - rest) & 0xffU;
  return (address[whole] & mask) == (block.prefix[whole] & mask);
}

}  // namespace

IpAddress IpAddress::v4(uint32_t host_order) {
  IpAddress out;
  const uint32_t network = htonl(host_order);
  std::memcpy(out.bytes_.data(), &network, sizeof network);
  return out;
}

IpAddress IpAddress::v6(const std::array<uint8_t, 16>& bytes) {
  IpAddress out;
  out.bytes_ = bytes;
  out.v6_ = true;
  return out;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string copy(text);
  IpAddress out;
  if (::inet_pton(AF_INET, copy.c_str(), out.bytes_.data()) == 1) return out;
  out.v6_ = true;
  if (::inet_pton(AF_INET6, copy.c_str(), out.bytes_.data()) == 1) return out;
  return std::nullopt;
}

std::optional<IpAddress> IpAddress::from(const sockaddr* address) {
  IpAddress out;
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    std::memcpy(out.bytes_.data(), &in.sin_addr, sizeof in.sin_addr);
    return out;
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, address, sizeof in);
    std::memcpy(out.bytes_.data(), &in.sin6_addr, sizeof in.sin6_addr);
    out.v6_ = true;
    return out;
  }
  return std::nullopt;
}

uint32_t IpAddress::v4_value() const {
  uint32_t network = 0;
  std::memcpy(&network, bytes_.data(), sizeof network);
  return ntohl(network);
}

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  ::inet_ntop(v6_ ? AF_INET6 : AF_INET, bytes_.data(), buffer.data(), buffer.size());
  return buffer.data();
}

socklen_t Endpoint::to_sockaddr(sockaddr_storage& out) const {
  out = {};
  if (address.is_v6()) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, address.v6_bytes().data(), sizeof in.sin6_addr);
    std::memcpy(&out, &in, sizeof in);
    return sizeof in;
  }
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  in.sin_addr.s_addr = htonl(address.v4_value());
  std::memcpy(&out, &in, sizeof in);
  return sizeof in;
}

std::string Endpoint::text() const {
  const std::string number = std::to_string(port);
  return address.is_v6() ? "[" + address.text() + "]:" + number : address.text() + ":" + number;
}

AddressClass classify(const IpAddress& address) {
  if (address.is_v6()) {
    for (const Block6& block : kBlocks6) {
      if (in_block(address.v6_bytes(), block)) return block.address_class;
    }
    return AddressClass::kReserved;
  }
  const uint32_t value = address.v4_value();
  for (const Block4& block : kBlocks4) {
    if (((value ^ block.prefix) >> (32 - block.bits)) == 0) return block.address_class;
  }
  return AddressClass::kGlobal;
}

std::string_view describe(AddressClass address_class) {
  switch (address_class) {
    case AddressClass::kGlobal:
      return "a public address";
    case AddressClass::kUnspecified:
      return "an unspecified address";
    case AddressClass::kLoopback:
      return "a loopback address";
    case AddressClass::kPrivate:
      return "a private address";
    case AddressClass::kLinkLocal:
      return "a link-local address";
    case AddressClass::kSharedCgnat:
      return "a carrier NAT address";
    case AddressClass::kProtocol:
      return "a protocol assignment";
    case AddressClass::kDocumentation:
      return "a documentation address";
    case AddressClass::kBenchmark:
      return "a benchmark address";
    case AddressClass::kMulticast:
      return "a multicast address";
    case AddressClass::kReserved:
      return "a reserved address";
    case AddressClass::kBroadcast:
      return "the broadcast address";
    case AddressClass::kMapped:
      return "an IPv4 address in IPv6 form";
    case AddressClass::kSixToFour:
      return "a 6to4 address";
    case AddressClass::kNat64:
      return "a NAT64 address";
    case AddressClass::kTeredo:
      return "a Teredo address";
    case AddressClass::kUniqueLocal:
      return "a unique local address";
    case AddressClass::kSiteLocal:
      return "a site-local address";
    case AddressClass::kDiscard:
      return "a discard-only address";
    case AddressClass::kCloudPlatform:
      return "a cloud platform address";
  }
  return "an unknown address";
}

}  // namespace belljar::net
