// The allowlist as the proxy asks it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "egress/denial.h"
#include "net/address.h"
#include "policy/policy.h"

namespace belljar::egress {

struct Verdict {
  bool allowed = false;
  Reason reason = Reason::kHostNotAllowed;  // when not allowed
  const policy::HostRule* rule = nullptr;   // the one that allows, or the nearest that does not; lives in the Rules
};

class Rules {
 public:
  explicit Rules(std::vector<policy::HostRule> rules) : rules_(std::move(rules)) {}

  // `host` comes from policy::canonical_host(). The first rule that matches decides.
  [[nodiscard]] Verdict decide(std::string_view host, uint16_t port) const;

  // True when a rule names this very address with this port and so lifts the check for public addresses. Never for
  // addresses that lead back to this host whatever it is called (loopback, unspecified, mapped) and for those that are
  // nobody's (multicast, broadcast, reserved, discard): a service of the host needs a grant of another kind.
  [[nodiscard]] bool names_address(const net::IpAddress& address, uint16_t port) const;
  // True when a rule for this address would have that effect.
  [[nodiscard]] static bool may_be_named(const net::IpAddress& address);

 private:
  std::vector<policy::HostRule> rules_;
};

// `example.com (flag)`: a rule for a person.
[[nodiscard]] std::string text_of(const policy::HostRule* rule);

// `--allow-host example.com`, or with the port where it is neither 80 nor 443.
[[nodiscard]] std::string allow_flag(std::string_view host, uint16_t port);

}  // namespace belljar::egress
