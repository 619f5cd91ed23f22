// A policy as text that reads back as the same policy. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace belljar::policy {

// TOML with the source of every setting as a comment. For a policy that load() made, loading this text again gives an
// equal one.
[[nodiscard]] std::string show(const Policy& policy);

// The same as JSON, in one shape for every policy: absent settings are left out; no sources.
[[nodiscard]] std::string show_json(const Policy& policy);

// The same, with only what has a source: what somebody said.
[[nodiscard]] std::string show_said_json(const Policy& policy);

// A string that both TOML (basic string) and JSON (RFC 8259, section 7) read back as `text`.
[[nodiscard]] std::string quote(std::string_view text);

// One line for each setting, entry of a list and entry of a table: `isolation.allow_hosts = "example.com"`. Two
// policies that permit different things differ in a line.
[[nodiscard]] std::vector<std::string> settings_of(const Policy& policy);

}  // namespace belljar::policy
