#include "policy/parse_hosts.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "policy/host_rule.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

const Names kRuleKeys = {"host", "ports",           "methods",   "paths",
                         "tls",  "max_connections", "max_bytes", "requests_per_minute"};
constexpr int64_t kMaxCount = int64_t{1} << 40;

// Characters of an HTTP method (RFC 9110, section 5.6.2), upper case: methods are case-sensitive and no known one has
// a small letter.
Verdict<std::string> parse_method(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  const auto good = [&](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kOthers.find(c) != std::string_view::npos;
  };
  if (text.empty() || text.size() > 32 || !std::all_of(text.begin(), text.end(), good)) {
    return no("not an HTTP method", "write it in capitals, such as GET");
  }
  if (text == "CONNECT") return no("no method of plain HTTP", "leave methods and paths out to allow tunnels");
  return std::string(text);
}

// A prefix that means the same to every server: see egress/request_path.h for what requests are held to.
Verdict<std::string> parse_prefix(std::string_view text) {
  if (!text.starts_with('/')) return no("not a path", "write it from the first '/', such as /v1/");
  if (text.size() > 1024) return no("longer than 1024 characters", "write a shorter prefix");
  for (const char c : text) {
    if (c <= ' ' || c >= 0x7F || c == '%' || c == '?' || c == '#' || c == '\\' || c == ';') {
      return no("holds a character that servers read differently", "write a plain prefix, such as /v1/");
    }
  }
  for (std::string_view rest = text.substr(1); !rest.empty();) {
    const size_t slash = rest.find('/');
    const std::string_view segment = rest.substr(0, slash);
    if (segment.empty() || segment == "." || segment == "..") {
      return no("holds an empty or dotted segment", "write a plain prefix, such as /v1/");
    }
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  }
  return std::string(text);
}

base::Status take_count(const Section& table, std::string_view key, std::optional<uint64_t>& out) {
  const Node* node = table.find(key);
  if (node == nullptr) return {};
  if (node->kind != Node::Kind::kInteger) return table.wrong_type(*node, key, "a number");
  if (node->integer < 1 || node->integer > kMaxCount) {
    return table.refuse(*node, key, std::to_string(node->integer), {"out of range", "write a number from 1 on"});
  }
  out = static_cast<uint64_t>(node->integer);
  return {};
}

base::Status take_bytes(const Section& table, HostRule& rule) {
  constexpr std::string_view kKey = "max_bytes";
  const Node* node = table.find(kKey);
  if (node == nullptr || node->kind == Node::Kind::kInteger) return take_count(table, kKey, rule.max_bytes);
  if (node->kind != Node::Kind::kString) return table.wrong_type(*node, kKey, "a size such as \"2GiB\"");
  const auto bytes = parse_size(node->text);
  if (!bytes) return table.refuse(*node, kKey, node->text, bytes.error());
  if (*bytes == 0) return table.refuse(*node, kKey, node->text, {"out of range", "write a size from 1B on"});
  rule.max_bytes = *bytes;
  return {};
}

base::Status take_ports(const Section& table, HostRule& rule) {
  constexpr std::string_view kKey = "ports";
  const Node* node = table.find(kKey);
  if (node == nullptr) return {};
  if (rule.port || rule.any_port) {
    return table.refuse(*node, kKey, "", {"the host has a port already", "write ports in one of the two places"});
  }
  if (node->kind == Node::Kind::kString && node->text == "*") {
    rule.any_port = true;
    return {};
  }
  if (node->kind != Node::Kind::kList || node->items.empty()) {
    return table.wrong_type(*node, kKey, "a list of port numbers, or \"*\"");
  }
  std::set<uint16_t> ports;
  for (const Node& item : node->items) {
    if (item.kind != Node::Kind::kInteger) return table.wrong_type(item, kKey, "a port number");
    if (item.integer < 1 || item.integer > 65535) {
      return table.refuse(item, kKey, std::to_string(item.integer), {"not a port", "write a number from 1 to 65535"});
    }
    if (!ports.insert(static_cast<uint16_t>(item.integer)).second) {
      return table.refuse(item, kKey, std::to_string(item.integer), {"given twice", {}});
    }
  }
  // One meaning, one form: what the text form can say is kept as it would be.
  if (ports == std::set<uint16_t>{80, 443}) return {};
  if (ports.size() == 1) {
    rule.port = *ports.begin();
  } else {
    rule.ports.assign(ports.begin(), ports.end());
  }
  return {};
}

base::Status take_tls(const Section& table, HostRule& rule) {
  std::optional<Said<Tls>> tls;
  BELLJAR_TRY(table.named("tls", kTlsUses, tls));
  if (!tls) return {};
  rule.tls = tls->value;
  if (!rule.only_plain_http()) return {};
  return table.refuse(*table.find("tls"), "tls", "",
                      {"contradicts methods and paths, which are read in plain HTTP only", "write two rules"});
}

base::Result<HostRule> parse_text(const Section& section, const Node& node, std::string_view key,
                                  base::Result<HostRule> (*parse)(std::string_view, std::string_view)) {
  auto rule = parse(node.text, section.place_of(node.at));
  if (!rule) return section.refuse(node, key, node.text, {rule.error().reason, rule.error().hint});
  return rule;
}

base::Result<HostRule> parse_table(const Section& table) {
  BELLJAR_TRY(table.check_keys(kRuleKeys));
  const Node* host = table.find("host");
  if (host == nullptr) {
    return table.refuse(table.node(), "host", "", {"missing", "name the host that this rule is for"});
  }
  if (host->kind != Node::Kind::kString) return table.wrong_type(*host, "host", "a string");
  BELLJAR_ASSIGN(HostRule rule, parse_text(table, *host, "host", parse_host_rule));
  rule.source = table.place_of(table.node().at);
  BELLJAR_TRY(take_ports(table, rule));
  BELLJAR_ASSIGN(rule.methods, table.plain_list("methods", parse_method));
  BELLJAR_ASSIGN(rule.paths, table.plain_list("paths", parse_prefix));
  BELLJAR_TRY(take_tls(table, rule));
  BELLJAR_TRY(take_count(table, "max_connections", rule.max_connections));
  BELLJAR_TRY(take_bytes(table, rule));
  BELLJAR_TRY(take_count(table, "requests_per_minute", rule.requests_per_minute));
  return rule;
}

base::Status add(const Section& section, const Node& node, std::string_view key, HostRule rule,
                 std::vector<HostRule>& rules) {
  const auto same = std::find(rules.begin(), rules.end(), rule);
  if (same != rules.end()) {
    return section.refuse(node, key, to_text(rule), {"given twice", "first at " + same->source});
  }
  rules.push_back(std::move(rule));
  return {};
}

}  // namespace

base::Result<std::vector<HostRule>> parse_allow_hosts(const Section& section) {
  constexpr std::string_view kKey = "allow_hosts";
  std::vector<HostRule> rules;
  const Node* node = section.find(kKey);
  if (node == nullptr) return rules;
  if (node->kind != Node::Kind::kList) return section.wrong_type(*node, kKey, "a list of hosts");
  for (const Node& item : node->items) {
    if (item.kind == Node::Kind::kTable) {
      BELLJAR_ASSIGN(HostRule rule, parse_table(section.sub(kKey, item)));
      BELLJAR_TRY(add(section, item, kKey, std::move(rule), rules));
    } else if (item.kind == Node::Kind::kString) {
      BELLJAR_ASSIGN(HostRule rule, parse_text(section, item, kKey, parse_host_rule));
      BELLJAR_TRY(add(section, item, kKey, std::move(rule), rules));
    } else {
      return section.wrong_type(item, kKey, "a host, or a table with 'host' and its options");
    }
  }
  return rules;
}

base::Result<std::vector<HostRule>> parse_deny_hosts(const Section& section) {
  constexpr std::string_view kKey = "deny_hosts";
  std::vector<HostRule> rules;
  const Node* node = section.find(kKey);
  if (node == nullptr) return rules;
  if (node->kind != Node::Kind::kList) return section.wrong_type(*node, kKey, "a list of hosts");
  for (const Node& item : node->items) {
    if (item.kind != Node::Kind::kString) return section.wrong_type(item, kKey, "a host");
    BELLJAR_ASSIGN(HostRule rule, parse_text(section, item, kKey, parse_deny_rule));
    BELLJAR_TRY(add(section, item, kKey, std::move(rule), rules));
  }
  return rules;
}

base::Result<std::vector<HostRule>> parse_host_ports(const Section& section) {
  constexpr std::string_view kKey = "host_ports";
  std::vector<HostRule> rules;
  const Node* node = section.find(kKey);
  if (node == nullptr) return rules;
  if (node->kind != Node::Kind::kList) return section.wrong_type(*node, kKey, "a list of port numbers");
  for (const Node& item : node->items) {
    if (item.kind != Node::Kind::kInteger) return section.wrong_type(item, kKey, "a port number");
    auto rule = parse_host_port(std::to_string(item.integer), section.place_of(item.at));
    if (!rule) {
      return section.refuse(item, kKey, std::to_string(item.integer), {rule.error().reason, rule.error().hint});
    }
    BELLJAR_TRY(add(section, item, kKey, std::move(*rule), rules));
  }
  return rules;
}

}  // namespace belljar::policy
