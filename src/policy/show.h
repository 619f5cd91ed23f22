// A policy as text that reads back as the same policy. Pure.
#pragma once

#include <string>

#include "policy/policy.h"

namespace belljar::policy {

// TOML with the source of every setting as a comment. For a policy that load() made, loading this text again gives an
// equal one.
[[nodiscard]] std::string show(const Policy& policy);

// The same as JSON, in one shape for every policy: absent settings are left out; no sources.
[[nodiscard]] std::string show_json(const Policy& policy);

}  // namespace belljar::policy
