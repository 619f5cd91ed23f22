// DNS queries as a resolver reads them and answers as it writes them (RFC 1035, section 4; RFC 6891 for EDNS).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/address.h"

namespace belljar::net {

// The types that are told apart; every other number is a type too (IANA, DNS Parameters).
enum class DnsType : uint16_t {
  kA = 1,
  kPtr = 12,
  kAaaa = 28,
  kOpt = 41,
};

enum class DnsCode : uint8_t {
  kNoError = 0,
  kFormErr = 1,
  kServFail = 2,
  kNxDomain = 3,
  kNotImp = 4,
  kRefused = 5,
  kBadVers = 16,
};

struct DnsQuery {
  uint16_t id = 0;
  uint16_t flags = 0;    // as sent
  DnsCode problem{};     // what a query that cannot be answered gets; kNoError: it can
  std::string question;  // the question's bytes, for the answer; empty when they could not be read
  uint16_t type = 0;
  uint16_t net_class = 0;  // 1: the internet
  bool edns = false;
  // The labels joined by dots, without one at the end; empty for the root. No value when a label holds anything but
  // letters, digits, `-` and `_`: such a name belongs to no host, and a dot in a label would make two names one.
  std::optional<std::string> name;
};

// One question, no compression in it, at most one additional record and that an OPT, nothing behind: what any stub
// resolver sends. Everything else has a problem. No value for what must not be answered at all: less than a header, or
// an answer itself (two resolvers that answer each other's answers never stop).
[[nodiscard]] std::optional<DnsQuery> parse_dns_query(std::string_view message);

// The longest query that is read, over UDP and TCP.
inline constexpr size_t kMaxDnsQuery = 1232;
// No answer is longer, so none is ever truncated (RFC 1035, section 4.2.1).
inline constexpr size_t kMaxDnsAnswer = 512;

// A response without records.
[[nodiscard]] std::string dns_answer(const DnsQuery& query, DnsCode code);
// A response with one address record for the name asked, A or AAAA as `address` is, valid for `ttl` seconds.
[[nodiscard]] std::string dns_answer(const DnsQuery& query, const IpAddress& address, uint32_t ttl);
// A response with one PTR record that leads to `host`, a canonical host name.
[[nodiscard]] std::string dns_pointer_answer(const DnsQuery& query, std::string_view host, uint32_t ttl);

// The address that a name below in-addr.arpa or ip6.arpa stands for (RFC 1035, section 3.5; RFC 3596, section 2.5).
// `name` in lower case.
[[nodiscard]] std::optional<IpAddress> address_of_reverse_name(std::string_view name);

}  // namespace belljar::net
