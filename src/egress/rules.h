// The rules of a session as the proxy asks them, and what each has been used for.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egress/bucket.h"
#include "egress/denial.h"
#include "net/address.h"
#include "policy/policy.h"

namespace belljar::egress {

// A rule and the use made of it, over the session. Lives as long as anything that it allowed.
struct Rule : policy::HostRule {
  explicit Rule(policy::HostRule rule) : HostRule(std::move(rule)) {}
  bool once = false;         // a person's answer to what waited for it: in no Rules, so only a denial can revoke it
  uint64_t connections = 0;  // open now
  uint64_t bytes = 0;        // both ways
  Bucket requests;           // requests_per_minute
};
using RulePtr = std::shared_ptr<Rule>;

struct Verdict {
  bool allowed = false;
  Reason reason = Reason::kHostNotAllowed;  // when not allowed
  RulePtr rule;                             // the one that decides, or the nearest that does not allow
};

// No rule speaks of this host and port, for or against.
[[nodiscard]] inline bool undecided(const Verdict& verdict) {
  return !verdict.allowed && (verdict.reason == Reason::kHostNotAllowed || verdict.reason == Reason::kPortNotAllowed);
}

// What is to be done with a host.
enum class Doing : uint8_t {
  kUnknown,  // not known yet: allowed when one of the others could be, and to be asked again
  kTunnel,   // bytes that the proxy does not read: CONNECT and its like
  kPlain,    // one request of plain HTTP
};

struct Request {
  std::string_view host;  // from policy::canonical_host()
  uint16_t port = 0;
  Doing doing = Doing::kUnknown;
  std::string_view method{};  // of kPlain
  std::string_view target{};  // of kPlain: path and query
  bool hooks = true;          // may a hook's rule decide?
};

class Rules {
 public:
  explicit Rules(const std::vector<policy::HostRule>& rules);

  // What denies decides first. A hook's rule allows its one request and takes nothing from other rules. Of the rules
  // for this host and port those with options count before those without, and of those the first that fits.
  [[nodiscard]] Verdict decide(const Request& request) const;
  [[nodiscard]] Verdict decide(std::string_view host, uint16_t port) const { return decide({host, port}); }

  // The rule that denies this canonical name or address, or null.
  [[nodiscard]] RulePtr denies(std::string_view host, uint16_t port) const;
  [[nodiscard]] RulePtr denies(const net::IpAddress& address, uint16_t port) const {
    return any_denies_ ? denies(address.text(), port) : RulePtr();
  }

  // True when some port of this canonical name is allowed: what a name has to be known for before its port is.
  [[nodiscard]] bool names_host(std::string_view host) const;

  // True when a rule names this very address, or a range around it, with this port and so lifts the check for public
  // addresses. Never for addresses that lead back to this host whatever it is called (loopback, unspecified, mapped)
  // and for those that are nobody's (multicast, broadcast, reserved, discard): a service of the host needs a grant of
  // another kind.
  [[nodiscard]] bool names_address(const net::IpAddress& address, uint16_t port) const;
  // True when a rule for this address would have that effect.
  [[nodiscard]] static bool may_be_named(const net::IpAddress& address);

  // Other rules from now on, beside the answers. One that was there before keeps what it has been used for.
  void replace(const std::vector<policy::HostRule>& rules);
  // What a person has answered, as long as the session lives.
  void add_answer(const policy::HostRule& rule);
  // Grows with every change.
  [[nodiscard]] uint64_t generation() const { return generation_; }

 private:
  std::vector<RulePtr> rules_;  // the answers last
  std::vector<policy::HostRule> answers_;
  bool any_denies_ = false;
  uint64_t generation_ = 0;
};

// Why one more request may not be made under `rule` now, or nothing; then it is counted, `now` on the boot clock.
[[nodiscard]] std::optional<Reason> take_request(Rule& rule, std::chrono::nanoseconds now);

// True when `target` lies below one of the prefixes, by whole segments. What servers could take for another path is
// below none: dot segments, empty ones, percent-encoded dots, slashes, backslashes and percent signs, `;` after dots.
[[nodiscard]] bool is_below(std::string_view target, const std::vector<std::string>& prefixes);

// `example.com (flag)`: a rule for a person.
[[nodiscard]] std::string text_of(const policy::HostRule* rule);
[[nodiscard]] inline std::string text_of(const RulePtr& rule) {
  return text_of(rule.get());
}

// `--allow-host example.com`, or with the port where it is neither 80 nor 443; `--host-port 5432` for the host's own
// name.
[[nodiscard]] std::string allow_flag(std::string_view host, uint16_t port);

}  // namespace belljar::egress
