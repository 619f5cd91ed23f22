#include "egress/rules.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "policy/host_rule.h"

namespace belljar::egress {
namespace {

using policy::Tls;

// Why a rule for this host and port does not fit what is to be done, or nothing.
std::optional<Reason> misfit(const Rule& rule, const Request& request) {
  switch (request.doing) {
    case Doing::kUnknown:
      return {};
    case Doing::kTunnel:
      if (rule.only_plain_http()) return Reason::kPlainHttpOnly;
      return {};
    case Doing::kPlain:
      break;
  }
  if (rule.tls == Tls::kRequired) return Reason::kTlsRequired;
  if (rule.hook) {
    if (std::ranges::find(rule.methods, request.method) == rule.methods.end()) return Reason::kMethodNotAllowed;
    if (std::ranges::find(rule.paths, request.target) == rule.paths.end()) return Reason::kPathNotAllowed;
    return {};
  }
  if (!rule.methods.empty() && std::ranges::find(rule.methods, request.method) == rule.methods.end()) {
    return Reason::kMethodNotAllowed;
  }
  if (!rule.paths.empty() && !is_below(request.target, rule.paths)) return Reason::kPathNotAllowed;
  return {};
}

// No wildcard reaches an address.
bool is_for(const Rule& rule, std::string_view host, bool literal) {
  return !(literal && rule.pattern.starts_with("*.")) && policy::matches_host(rule, host);
}

// The byte that is encoded at `at` of `path` (RFC 3986, section 2.1), or -1.
int encoded_byte(std::string_view path, size_t at) {
  const auto digit = [&](size_t place) {
    const char c = place < path.size() ? path[place] : ' ';
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (at >= path.size() || path[at] != '%' || digit(at + 1) < 0 || digit(at + 2) < 0) return -1;
  return digit(at + 1) * 16 + digit(at + 2);
}

// True for a path that means the same to every server. Some take an overlong form of a dot or slash in UTF-8, %u002e or
// a full-width form (U+FF0E, U+FF0F, U+FF3C) for the character, decode %3b to what begins parameters, or end a line at
// an encoded control.
bool is_plain_path(std::string_view path) {
  if (!path.starts_with('/') || path.contains('\\')) return false;
  for (size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
    const int byte = encoded_byte(path, at);
    constexpr std::array kRisky = {0x25, 0x2e, 0x2f, 0x3b, 0x5c, 0x7f, 0xc0, 0xc1};
    if (byte < 0x20 || std::ranges::find(kRisky, byte) != kRisky.end()) return false;
    const int next = encoded_byte(path, at + 3);
    if (byte == 0xef && next == 0xbc) return false;  // U+FF00 to U+FF3F
    if (next >= 0 && ((byte == 0xe0 && next < 0xa0) || (byte == 0xf0 && next < 0x90))) return false;
  }
  const auto segments = base::split(path.substr(1), '/');
  for (size_t i = 0; i < segments.size(); ++i) {
    const std::string_view name = segments[i].substr(0, segments[i].find(';'));
    if (name == "." || name == "..") return false;
    if (segments[i].empty() && i + 1 != segments.size()) return false;
  }
  return true;
}

}  // namespace

Rules::Rules(const std::vector<policy::HostRule>& rules) {
  replace(rules);
}

void Rules::replace(const std::vector<policy::HostRule>& rules) {
  std::vector<RulePtr> next;
  next.reserve(rules.size() + answers_.size());
  const auto take = [&](const policy::HostRule& rule) {
    const auto known = std::ranges::find_if(rules_, [&](const RulePtr& old) { return *old == rule; });
    next.push_back(known == rules_.end() ? std::make_shared<Rule>(rule) : *known);
  };
  std::ranges::for_each(rules, take);
  std::ranges::for_each(answers_, take);
  rules_ = std::move(next);
  any_denies_ = std::ranges::any_of(rules_, [](const RulePtr& rule) { return rule->deny; });
  ++generation_;
}

void Rules::add_answer(const policy::HostRule& rule) {
  if (std::ranges::find(answers_, rule) != answers_.end()) return;
  answers_.push_back(rule);
  rules_.push_back(std::make_shared<Rule>(rule));
  any_denies_ = any_denies_ || rule.deny;
  ++generation_;
}

RulePtr Rules::denies(std::string_view host, uint16_t port) const {
  for (const RulePtr& rule : rules_) {
    if (rule->deny && policy::matches(*rule, host, port)) return rule;
  }
  return {};
}

Verdict Rules::decide(const Request& request) const {
  if (RulePtr denier = denies(request.host, request.port)) return {false, Reason::kHostDenied, std::move(denier)};
  const bool literal = net::IpAddress::parse(request.host).has_value();
  Verdict near;
  Verdict hook;
  RulePtr plain;
  for (const RulePtr& rule : rules_) {
    if (rule->deny || (rule->hook && !request.hooks) || !is_for(*rule, request.host, literal)) continue;
    const bool port_fits = policy::matches_port(*rule, request.port);
    if (port_fits && !rule->has_options()) {
      if (plain == nullptr) plain = rule;
      continue;
    }
    const auto why = port_fits ? misfit(*rule, request) : Reason::kPortNotAllowed;
    if (!why) return {true, Reason::kHostNotAllowed, rule};
    if (rule->hook) {
      hook = {false, *why, rule};
      continue;
    }
    // A rule that has the port is nearer than one that has not.
    if (near.rule == nullptr || (near.reason == Reason::kPortNotAllowed && port_fits)) near = {false, *why, rule};
  }
  const bool limited = near.rule != nullptr && near.reason != Reason::kPortNotAllowed;
  if (plain != nullptr && !limited) return {true, Reason::kHostNotAllowed, std::move(plain)};
  return near.rule == nullptr ? hook : near;
}

bool Rules::names_host(std::string_view host) const {
  const bool literal = net::IpAddress::parse(host).has_value();
  return std::ranges::any_of(rules_, [&](const RulePtr& rule) {
    if (rule->deny || !is_for(*rule, host, literal)) return false;
    std::vector<uint16_t> ports = rule->ports;
    if (rule->port) ports.push_back(*rule->port);
    if (rule->any_port) ports.push_back(1);
    if (ports.empty()) ports = {80, 443};
    return std::ranges::any_of(ports, [&](uint16_t port) { return denies(host, port) == nullptr; });
  });
}

bool Rules::names_address(const net::IpAddress& address, uint16_t port) const {
  const std::string text = address.text();
  Request request{text, port};
  request.hooks = false;
  return may_be_named(address) && decide(request).allowed;
}

bool Rules::may_be_named(const net::IpAddress& address) {
  using enum net::AddressClass;
  static constexpr std::array kNever = {kUnspecified, kLoopback, kMapped, kMulticast, kBroadcast, kReserved, kDiscard};
  const net::AddressClass address_class = net::classify(address);
  return std::ranges::find(kNever, address_class) == kNever.end();
}

std::optional<Reason> take_request(Rule& rule, std::chrono::nanoseconds now) {
  if (rule.max_bytes && rule.bytes >= *rule.max_bytes) return Reason::kRuleBytes;
  if (rule.max_connections && rule.connections >= *rule.max_connections) return Reason::kRuleConnections;
  if (!rule.requests_per_minute) return {};
  const auto full = static_cast<double>(*rule.requests_per_minute);
  if (!rule.requests.take(now, full, full / 60)) return Reason::kRuleRate;
  return {};
}

bool is_below(std::string_view target, const std::vector<std::string>& prefixes) {
  const std::string_view path = target.substr(0, target.find('?'));
  if (!is_plain_path(path)) return false;
  return std::ranges::any_of(prefixes, [&](const std::string& prefix) {
    return path.starts_with(prefix) &&
           (prefix.ends_with('/') || path.size() == prefix.size() || path[prefix.size()] == '/');
  });
}

std::string text_of(const policy::HostRule* rule) {
  if (rule == nullptr) return {};
  std::string out = policy::to_text(*rule);
  if (!rule->source.empty()) out += " (" + rule->source + ")";
  return out;
}

std::string allow_flag(std::string_view host, uint16_t port) {
  if (host == policy::kHostName) return "--host-port " + std::to_string(port);
  policy::HostRule rule;
  rule.pattern = host;
  if (port != 80 && port != 443) rule.port = port;
  return "--allow-host " + policy::to_text(rule);
}

}  // namespace belljar::egress
