// The URL that an agent's callbacks are relayed to. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"
#include "policy/verdict.h"

namespace belljar::policy {

struct HookUrl {
  std::string host;  // canonical: a name or an address literal
  uint16_t port = 80;
  std::string target;  // path and query, begins with `/`
  bool tls = false;    // https
};

// `http://host[:port]/path[?query]`, or https. Refused: user names, fragments, and paths that servers could read in two
// ways (dot segments, `//`, backslashes, `%2e`, `%2f`, `%5c`, `%25`).
[[nodiscard]] Verdict<HookUrl> parse_hook_url(std::string_view text);

// The same URL in one spelling: host as canonical_host() writes it, no usual port, a path.
[[nodiscard]] Verdict<std::string> canonical_hook_url(std::string_view text);

// The rules that lead to a hook: under its own host, unless that is spoken to in TLS, which a guest's client would want
// to open itself, and under kHookName. None without a URL.
[[nodiscard]] std::vector<HostRule> hook_rules(const Hook& hook, std::string_view source);

// The loopback by name or address.
[[nodiscard]] bool is_loopback(std::string_view host);

// The port of a http hook on the loopback, which leads to the relay inside a guest; 0 for every other one.
[[nodiscard]] uint16_t loopback_port(const Hook& hook);

// What a guest asks for: the hook under kHookName.
[[nodiscard]] std::string hook_url_in_guest(const HookUrl& url);

// How many callbacks there may be at a time: each over https is a process of the host.
inline constexpr uint64_t kMostCallbacks = 32;
// How many callbacks a minute go through, saved up for one minute at most.
inline constexpr uint64_t kHooksPerMinute = 600;

}  // namespace belljar::policy
