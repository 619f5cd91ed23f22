#include "policy/host_rule.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/text.h"
#include "policy/values.h"
#include "policy/verdict.h"

namespace belljar::policy {
namespace {

constexpr size_t kMaxName = 253;   // RFC 1035 section 2.3.4 counts 255 octets on the wire: 253 as text
constexpr size_t kMaxLabel = 63;   // the same section
constexpr size_t kMaxInput = 512;  // longer text is not worth reading, nor quoting whole in a message

bool is_hex(char c) {
  return base::is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Decimal without sign or leading zero, at most `max`.
std::optional<uint64_t> plain_number(std::string_view text, uint64_t max) {
  uint64_t value = 0;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  if (!base::parse_uint(text, value) || value > max) return std::nullopt;
  return value;
}

// True for text that some resolver or URL parser takes for part of an IPv4 address: the WHATWG URL standard's
// "ends in a number" check and inet_aton(3) both read decimal, octal and 0x hex.
bool looks_numeric(std::string_view label) {
  if (label.empty()) return false;
  if (std::all_of(label.begin(), label.end(), base::is_digit)) return true;
  return label.size() >= 2 && label[0] == '0' && (label[1] == 'x' || label[1] == 'X') &&
         std::all_of(label.begin() + 2, label.end(), is_hex);
}

Verdict<std::string> parse_ipv4(std::string_view text) {
  const auto parts = base::split(text, '.');
  const bool good = parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
                      return plain_number(part, 255).has_value();
                    });
  if (!good) {
    return no("an IPv4 address in a notation that programs read differently",
              "write four decimal numbers without leading zeros, such as 192.0.2.7");
  }
  return std::string(text);
}

Verdict<std::string> parse_ipv6(std::string_view text) {
  if (text.find('%') != std::string_view::npos) {
    return no("an address with a zone id, which names an interface of one machine", "write the address without '%'");
  }
  in6_addr address{};
  const std::string copy(text);
  if (copy.find('\0') != std::string::npos || ::inet_pton(AF_INET6, copy.c_str(), &address) != 1) {
    return no("not an IPv6 address", "write it as in [2001:db8::1]:443, or 2001:db8::1 for ports 80 and 443");
  }
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    return no("an IPv4 address written as IPv6", "write the IPv4 address itself");
  }
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  return std::string(::inet_ntop(AF_INET6, &address, buffer.data(), buffer.size()));
}

// What is wrong with the characters of `text`, most telling first.
Verdict<void> check_characters(std::string_view text) {
  if (text.empty()) return no("empty", "name a host, such as example.com");
  if (text.size() > kMaxInput) return no("longer than any host name", "a name has at most 253 characters");
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) return no("holds a control character", "write the bare host name");
    if (byte == ' ') return no("holds a space", "write one host per entry");
    if (byte >= 0x80) {
      return no("holds a letter outside ASCII", "write the A-label form, such as xn--bcher-kva.example");
    }
  }
  if (text.find("://") != std::string_view::npos) {
    return no("a URL, not a host", "write only the host, without scheme and path");
  }
  if (text.find_first_of("/\\?#") != std::string_view::npos) {
    return no("holds a path, query or fragment", "rules are for whole hosts: write only the host");
  }
  if (text.find('@') != std::string_view::npos) return no("holds a user name", "write only what follows the '@'");
  return {};
}

Verdict<void> check_label(std::string_view label) {
  if (label.empty()) return no("holds an empty label", "write labels separated by single dots");
  if (label.size() > kMaxLabel) return no("holds a label of more than 63 characters", "no such name exists in the DNS");
  if (label.front() == '-' || label.back() == '-') {
    return no("holds a label that starts or ends with '-'", "no such host name is valid");
  }
  for (const char c : label) {
    if (c == '%') return no("holds percent-encoding", "write the plain name");
    if (c == '*') return no("holds a '*' that is not the whole first label", "write *.example.com");
    if (!base::is_letter(c) && !base::is_digit(c) && c != '-' && c != '_') {
      return no("holds a character that no host name has: '" + std::string(1, c) + "'",
                "letters, digits, '-', '_' and '.' are allowed");
    }
  }
  return {};
}

// A name or IPv4 literal, lower case, without its trailing dot.
Verdict<std::string> parse_name(std::string_view text, bool wildcard) {
  const bool rooted = text.ends_with('.');
  if (rooted) text.remove_suffix(1);
  const auto labels = base::split(text, '.');
  if (looks_numeric(labels.back())) {
    if (wildcard) return no("a wildcard over an address", "name the address itself");
    if (rooted) return no("an address with a trailing dot", "write it without the dot");
    return parse_ipv4(text);
  }
  for (const std::string_view label : labels) {
    if (auto good = check_label(label); !good) return std::unexpected(good.error());
  }
  if (text.size() + (wildcard ? 2 : 0) > kMaxName) {
    return no("longer than 253 characters", "no such name exists in the DNS");
  }
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

// `belljar` is no top-level domain; what ends in it is answered here and never looked up.
bool is_reserved(std::string_view host) {
  return host == "belljar" || host.ends_with(".belljar");
}

Verdict<void> parse_port(std::string_view text, HostRule& rule) {
  if (text == "*") {
    rule.any_port = true;
    return {};
  }
  const auto port = plain_number(text, 65535);
  if (!port || *port == 0) return no("not a port after ':'", "write a number from 1 to 65535, or * for any port");
  rule.port = static_cast<uint16_t>(*port);
  return {};
}

// `[ADDRESS]` and what follows the bracket.
Verdict<std::string> parse_bracketed(std::string_view text, std::string_view& rest) {
  const size_t close = text.find(']');
  if (close == std::string_view::npos) return no("a '[' without its ']'", "write it as in [2001:db8::1]:443");
  rest = text.substr(close + 1);
  return parse_ipv6(text.substr(1, close - 1));
}

// The bits of a canonical address literal, 4 or 16 of them; empty for anything else.
std::vector<uint8_t> address_bytes(std::string_view text) {
  std::vector<uint8_t> out(16);
  const std::string copy(text);
  if (::inet_pton(AF_INET6, copy.c_str(), out.data()) == 1) return out;
  out.resize(4);
  if (::inet_pton(AF_INET, copy.c_str(), out.data()) == 1) return out;
  return {};
}

bool same_bits(const std::vector<uint8_t>& one, const std::vector<uint8_t>& other, size_t bits) {
  const auto whole = static_cast<ptrdiff_t>(bits / 8);
  if (!std::equal(one.begin(), one.begin() + whole, other.begin())) return false;
  const size_t rest = bits % 8;
  return rest == 0 || ((one[bits / 8] ^ other[bits / 8]) >> (8 - rest)) == 0;
}

// True when the `/` of `text` can only be that of a range: an address is before it.
bool is_range(std::string_view text) {
  if (text.starts_with('[')) text.remove_prefix(1);
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0) return false;
  const std::string_view head = text.substr(0, slash);
  const bool v4 = std::all_of(head.begin(), head.end(), [](char c) { return base::is_digit(c) || c == '.'; });
  const bool v6 = std::all_of(head.begin(), head.end(), [](char c) { return is_hex(c) || c == '.' || c == ':'; });
  return v4 || (v6 && std::count(head.begin(), head.end(), ':') >= 2);
}

// `ADDRESS/BITS`, without brackets and port.
Verdict<std::string> parse_range(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string_view head = text.substr(0, slash);
  auto address = head.find(':') != std::string_view::npos ? parse_ipv6(head) : parse_ipv4(head);
  if (!address) return address;
  const std::vector<uint8_t> bytes = address_bytes(*address);
  const auto bits = plain_number(text.substr(slash + 1), bytes.size() * 8);
  if (!bits) return no("not a range of addresses", "write as in 10.0.0.0/8 or [2001:db8::/32]:443");
  if (*bits == 0) return no("every host", "name the ranges, or use network = \"allow\"");
  std::vector<uint8_t> first = bytes;
  for (size_t i = 0; i < first.size(); ++i) {
    const size_t kept = *bits >= 8 * (i + 1) ? 8 : *bits > 8 * i ? *bits - 8 * i : 0;
    first[i] = static_cast<uint8_t>(first[i] & (0xFF00U >> kept));
  }
  if (first != bytes) {
    std::array<char, INET6_ADDRSTRLEN> buffer{};
    ::inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, first.data(), buffer.data(), buffer.size());
    return no("an address with more bits than its range has",
              "write " + std::string(buffer.data()) + "/" + std::to_string(*bits) + ", or the address alone");
  }
  return *address + "/" + std::to_string(*bits);
}

Verdict<HostRule> parse_range_rule(std::string_view text) {
  HostRule rule;
  std::string_view rest;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return no("a '[' without its ']'", "write it as in [2001:db8::/32]:443");
    rest = text.substr(close + 1);
    text = text.substr(1, close - 1);
    if (!is_range(text)) return no("not a range of addresses", "write as in 10.0.0.0/8 or [2001:db8::/32]:443");
    if (!rest.empty() && rest.front() != ':')
      return no("text after ']' that is not a port", "write [2001:db8::/32]:443");
  } else if (const size_t colon = text.find(':', text.find('/')); colon != std::string_view::npos) {
    rest = text.substr(colon);
    text = text.substr(0, colon);
  }
  auto range = parse_range(text);
  if (!range) return std::unexpected(range.error());
  rule.pattern = std::move(*range);
  if (!rest.empty()) {
    if (auto good = parse_port(rest.substr(1), rule); !good) return std::unexpected(good.error());
  }
  return rule;
}

Verdict<HostRule> parse_rule(std::string_view text) {
  if (is_range(text)) return parse_range_rule(text);
  if (auto good = check_characters(text); !good) return std::unexpected(good.error());
  HostRule rule;
  std::string_view rest;
  if (text.front() == '[') {
    auto address = parse_bracketed(text, rest);
    if (!address) return std::unexpected(address.error());
    rule.pattern = std::move(*address);
    if (!rest.empty() && rest.front() != ':') return no("text after ']' that is not a port", "write [2001:db8::1]:443");
  } else if (std::count(text.begin(), text.end(), ':') >= 2) {
    auto address = parse_ipv6(text);
    if (!address) return std::unexpected(address.error());
    rule.pattern = std::move(*address);
  } else {
    const size_t colon = text.find(':');
    if (colon != std::string_view::npos) rest = text.substr(colon);
    std::string_view name = text.substr(0, colon);
    if (name.empty()) return no("a port without a host", "write HOST:PORT");
    if (name == "*" || name == "*.") return no("every host", "name the hosts, or use network = \"allow\"");
    const bool wildcard = name.starts_with("*.");
    if (wildcard) name.remove_prefix(2);
    auto host = parse_name(name, wildcard);
    if (!host) return std::unexpected(host.error());
    if (is_reserved(*host)) {
      return no("Belljar's own name for the host", "grant one port of its loopback by host_ports (--host-port)");
    }
    rule.pattern = (wildcard ? "*." : "") + *host;
  }
  if (!rest.empty()) {
    if (auto good = parse_port(rest.substr(1), rule); !good) return std::unexpected(good.error());
  }
  return rule;
}

Verdict<std::string> parse_host(std::string_view text) {
  if (auto good = check_characters(text); !good) return std::unexpected(good.error());
  if (text.front() == '[') {
    std::string_view rest;
    auto address = parse_bracketed(text, rest);
    if (address && !rest.empty()) return no("text after ']'", "name a host without port");
    return address;
  }
  const auto colons = std::count(text.begin(), text.end(), ':');
  if (colons >= 2) return parse_ipv6(text);
  if (colons == 1) return no("holds a ':'", "name a host without port");
  return parse_name(text, false);
}

std::unexpected<base::Error> to_error(std::string_view operation, std::string_view text, Refusal refusal) {
  std::string subject(text.substr(0, kMaxInput));
  if (text.size() > kMaxInput) subject += "...";
  return base::refuse(operation, subject, refusal.reason, refusal.hint);
}

}  // namespace

base::Result<HostRule> parse_host_rule(std::string_view text, std::string_view source) {
  auto rule = parse_rule(text);
  if (rule && rule->pattern.starts_with("127.") && rule->pattern.contains('/')) {
    rule = no("the host's own loopback, which no rule opens", "grant one port of it by host_ports (--host-port)");
  }
  if (!rule) return to_error("host rule", text, std::move(rule).error());
  rule->source = source;
  return std::move(*rule);
}

base::Result<HostRule> parse_deny_rule(std::string_view text, std::string_view source) {
  auto rule = parse_rule(text);
  if (!rule) return to_error("host rule", text, std::move(rule).error());
  rule->source = source;
  rule->deny = true;
  rule->any_port = !rule->port;
  return std::move(*rule);
}

base::Result<HostRule> parse_host_port(std::string_view text, std::string_view source) {
  const auto port = plain_number(text, 65535);
  if (!port || *port == 0) return base::refuse("host port", text, "not a port", "write a number from 1 to 65535");
  HostRule rule;
  rule.pattern = kHostName;
  rule.port = static_cast<uint16_t>(*port);
  rule.host_port = true;
  rule.tls = Tls::kAny;
  rule.source = source;
  return rule;
}

std::string to_text(const HostRule& rule) {
  if (rule.deny && rule.any_port) return rule.pattern;
  if (!rule.port && !rule.any_port && rule.ports.empty()) return rule.pattern;
  const bool address6 = rule.pattern.find(':') != std::string::npos;
  std::string out = address6 ? "[" + rule.pattern + "]" : rule.pattern;
  char separator = ':';
  for (const uint16_t port : rule.ports) {
    out += separator + std::to_string(port);
    separator = ',';
  }
  if (rule.any_port) out += ":*";
  if (rule.port) out += ":" + std::to_string(*rule.port);
  return out;
}

std::string options_text(const HostRule& rule) {
  std::vector<std::string> parts;
  if (!rule.methods.empty()) parts.push_back("only " + base::join(rule.methods, ", "));
  if (!rule.paths.empty()) parts.push_back("only below " + base::join(rule.paths, ", "));
  if (rule.tls == Tls::kRequired) parts.emplace_back("TLS required");
  if (rule.tls == Tls::kAny && !rule.host_port) parts.emplace_back("any protocol in a tunnel");
  if (rule.max_connections) parts.push_back("at most " + std::to_string(*rule.max_connections) + " connections");
  if (rule.max_bytes) parts.push_back("at most " + size_text(*rule.max_bytes));
  if (rule.requests_per_minute) {
    parts.push_back("at most " + std::to_string(*rule.requests_per_minute) + " requests a minute");
  }
  return base::join(parts, "; ");
}

void give_ids(std::vector<HostRule>& rules) {
  std::map<std::string, int> seen;
  for (HostRule& rule : rules) {
    rule.id = rule.host_port ? "host_port:" + std::to_string(rule.port.value_or(0))
              : rule.hook    ? "hook:" + to_text(rule)
                             : (rule.deny ? "deny:" : "allow:") + to_text(rule);
    const int count = ++seen[rule.id];
    if (count > 1) rule.id += "#" + std::to_string(count);
  }
}

base::Result<std::string> canonical_host(std::string_view text) {
  auto host = parse_host(text);
  if (!host) return to_error("host", text, std::move(host).error());
  return std::move(*host);
}

bool matches_port(const HostRule& rule, uint16_t port) {
  if (rule.any_port) return true;
  if (rule.port) return port == *rule.port;
  if (!rule.ports.empty()) return std::find(rule.ports.begin(), rule.ports.end(), port) != rule.ports.end();
  return port == 80 || port == 443;
}

bool matches_host(const HostRule& rule, std::string_view host) {
  const std::string_view pattern = rule.pattern;
  if (const size_t slash = pattern.find('/'); slash != std::string_view::npos) {
    const std::vector<uint8_t> address = address_bytes(host);
    const std::vector<uint8_t> first = address_bytes(pattern.substr(0, slash));
    const auto bits = plain_number(pattern.substr(slash + 1), first.size() * 8);
    return bits && !address.empty() && address.size() == first.size() && same_bits(address, first, *bits);
  }
  if (!pattern.starts_with("*.")) return !pattern.empty() && host == pattern;
  const std::string_view suffix = pattern.substr(1);
  return host.size() > suffix.size() && host.ends_with(suffix);
}

bool matches(const HostRule& rule, std::string_view host, uint16_t port) {
  return matches_port(rule, port) && matches_host(rule, host);
}

}  // namespace belljar::policy
