// The strict reader of policy files.
#pragma once

#include <string_view>

#include "base/error.h"
#include "policy/layer.h"

namespace belljar::policy {

// What the TOML or JSON `text` of the file `name` says (read_document() tells which). docs/policy.md is the reference.
// Refused with `NAME:line:column`: unknown keys, wrong types, duplicates, values out of range, contradictions within
// the file. JSON also takes the launch form `{"mode": …, "network": …, "docker_image": …, "allow_hosts": […]}`, in
// which an absent network means "allow" and an absent or empty mode "none". Reads no other file.
[[nodiscard]] base::Result<PolicyLayer> parse_policy(std::string_view text, std::string_view name);

// True when an entry of `extends` names a file rather than a preset: it holds a `/` or ends in `.toml` or `.json`.
[[nodiscard]] bool names_file(std::string_view entry);

}  // namespace belljar::policy
