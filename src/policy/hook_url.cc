#include "policy/hook_url.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "policy/host_rule.h"

namespace belljar::policy {
namespace {

constexpr std::string_view kScheme = "http://";
constexpr std::string_view kTlsScheme = "https://";

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool starts_with_word(std::string_view text, std::string_view word) {
  return text.size() >= word.size() &&
         std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) { return a == lower(b); });
}

bool is_visible(char c) {
  return c > ' ' && c < '\x7f' && std::string_view("\\\"<>^`{}|#").find(c) == std::string_view::npos;
}

bool has_two_readings(std::string_view path) {
  for (size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
    if (path.size() - at < 3) return true;
    const std::array<char, 2> code = {lower(path[at + 1]), lower(path[at + 2])};
    for (const std::string_view risky : {"2e", "2f", "5c", "25", "00"}) {
      if (risky == std::string_view(code.data(), code.size())) return true;
    }
  }
  const auto segments = base::split(path.substr(1), '/');
  for (size_t i = 0; i < segments.size(); ++i) {
    if (segments[i] == "." || segments[i] == ".." || (segments[i].empty() && i + 1 != segments.size())) return true;
  }
  return false;
}

}  // namespace

Verdict<HookUrl> parse_hook_url(std::string_view text) {
  HookUrl out;
  out.tls = starts_with_word(text, kTlsScheme);
  if (!out.tls && !starts_with_word(text, kScheme)) return no("not an http URL", "http://127.0.0.1:8080/hook");
  if (out.tls) out.port = 443;
  text.remove_prefix(out.tls ? kTlsScheme.size() : kScheme.size());
  const size_t end = std::min(text.find_first_of("/?"), text.size());
  std::string_view authority = text.substr(0, end);
  out.target = text.substr(end);
  if (!out.target.starts_with('/')) out.target.insert(0, "/");
  if (!std::ranges::all_of(out.target, is_visible)) return no("its path holds a character that no URL has");
  if (has_two_readings(out.target.substr(0, out.target.find('?')))) {
    return no("its path can be read in two ways", "write it without dots, doubled slashes and escapes of these");
  }
  if (authority.contains('@')) return no("it holds a user name", "the token is named by --hook-token-env");
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    uint64_t port = 0;
    const std::string_view digits = authority.substr(colon + 1);
    if (digits.starts_with('0') || !base::parse_uint(digits, port) || port > 65535) {
      return no("its port is not a number from 1 to 65535");
    }
    out.port = static_cast<uint16_t>(port);
    authority = authority.substr(0, colon);
  }
  auto host = canonical_host(authority);
  if (!host) return no("its host: " + host.error().reason, host.error().hint);
  if (*host == kHostName || *host == kHookName) return no("that name is the guest's", "name the control host itself");
  out.host = std::move(*host);
  return out;
}

Verdict<std::string> canonical_hook_url(std::string_view text) {
  const auto url = parse_hook_url(text);
  if (!url) return std::unexpected(url.error());
  const bool v6 = url->host.contains(':');
  return std::string(url->tls ? kTlsScheme : kScheme) + (v6 ? "[" : "") + url->host + (v6 ? "]" : "") +
         (url->port == (url->tls ? 443 : 80) ? "" : ":" + std::to_string(url->port)) + url->target;
}

std::vector<HostRule> hook_rules(const Hook& hook, std::string_view source) {
  if (hook.url.empty()) return {};
  const auto url = parse_hook_url(hook.url);
  if (!url) return {};  // a Policy holds none of these
  HostRule rule;
  rule.pattern = url->host;
  rule.port = url->port;
  rule.source = source;
  rule.hook = true;
  rule.max_connections = kMostCallbacks;
  rule.methods = {"POST"};
  rule.paths = {url->target};
  rule.requests_per_minute = kHooksPerMinute;
  HostRule alias = rule;
  alias.pattern = kHookName;
  alias.port = 80;
  if (url->tls) return {std::move(alias)};
  return {std::move(rule), std::move(alias)};
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host.ends_with(".localhost") || host == "::1" || host.starts_with("127.");
}

uint16_t loopback_port(const Hook& hook) {
  if (hook.url.empty()) return 0;
  const auto url = parse_hook_url(hook.url);
  return url && !url->tls && is_loopback(url->host) ? url->port : uint16_t{0};
}

std::string hook_url_in_guest(const HookUrl& url) {
  return std::string(kScheme) + kHookName + url.target;
}

}  // namespace belljar::policy
