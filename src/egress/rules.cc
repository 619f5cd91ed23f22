#include "egress/rules.h"

#include <array>

#include "policy/host_rule.h"

namespace belljar::egress {

Verdict Rules::decide(std::string_view host, uint16_t port) const {
  Verdict out;
  const bool literal = net::IpAddress::parse(host).has_value();
  for (const policy::HostRule& rule : rules_) {
    if (literal && rule.pattern != host) continue;  // no wildcard reaches an address
    if (policy::matches(rule, host, port)) return {true, Reason::kHostNotAllowed, &rule};
    if (out.rule != nullptr) continue;
    policy::HostRule any_port = rule;
    any_port.port.reset();
    any_port.any_port = true;
    if (policy::matches(any_port, host, port)) out = {false, Reason::kPortNotAllowed, &rule};
  }
  return out;
}

bool Rules::names_address(const net::IpAddress& address, uint16_t port) const {
  return may_be_named(address) && decide(address.text(), port).allowed;
}

bool Rules::may_be_named(const net::IpAddress& address) {
  using enum net::AddressClass;
  static constexpr std::array kNever = {kUnspecified, kLoopback, kMapped, kMulticast, kBroadcast, kReserved, kDiscard};
  const net::AddressClass address_class = net::classify(address);
  for (const net::AddressClass never : kNever) {
    if (address_class == never) return false;
  }
  return true;
}

std::string text_of(const policy::HostRule* rule) {
  if (rule == nullptr) return {};
  std::string out = policy::to_text(*rule);
  if (!rule->source.empty()) out += " (" + rule->source + ")";
  return out;
}

std::string allow_flag(std::string_view host, uint16_t port) {
  policy::HostRule rule;
  rule.pattern = host;
  if (port != 80 && port != 443) rule.port = port;
  return "--allow-host " + policy::to_text(rule);
}

}  // namespace belljar::egress
