// Any bytes as a DNS query of the guest's. What is answered is a response to that question, short, and never names a
// host that no rule allows.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "egress/guest_resolver.h"
#include "net/dns.h"
#include "policy/host_rule.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belljar;
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  static const egress::Rules rules({*policy::parse_host_rule("a.test", ""), *policy::parse_host_rule("*.b.test", ""),
                                    *policy::parse_deny_rule("no.b.test", "")});
  egress::SyntheticHosts hosts;
  egress::Journal log;
  egress::GuestAnswers answers(rules, hosts, log, true);
  const std::string answer = answers.to(message);
  if (answer.empty()) return 0;
  require(answer.size() >= 12 && answer.size() <= net::kMaxDnsAnswer && size >= 12);
  require(answer.substr(0, 2) == message.substr(0, 2));
  require((static_cast<uint8_t>(answer[2]) & 0x80U) != 0);
  const auto query = net::parse_dns_query(message);
  require(query.has_value());
  require(!net::parse_dns_query(answer));  // nobody answers an answer
  const auto host = hosts.at(net::IpAddress::v4(0xc6120001));
  if (host != nullptr) require(rules.names_host(*host) && *policy::canonical_host(*host) == *host);
  // The same question again has the same answer.
  require(answers.to(message) == answer);
  return 0;
}
