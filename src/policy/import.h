// Sandbox settings of other tools, read as a policy of ours. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "policy/layer.h"

namespace belljar::policy {

enum class ImportFormat : uint8_t {
  kClaude,  // Claude Code's settings.json: `sandbox` and `permissions`
  kSrt,     // the sandbox runtime's settings file
  kCodex,   // Codex's config.toml: sandbox_mode, [sandbox_workspace_write], [shell_environment_policy]
};

enum class Outcome : uint8_t {
  kCarried,       // the policy says the same
  kStricter,      // not carried: what holds here anyway allows less
  kNotSupported,  // not carried, and nothing here stands for it
  kWider,         // not carried, and what holds here allows more: a person must decide
};

[[nodiscard]] std::string_view to_text(Outcome outcome);

// What became of one key, or of one entry of a list.
struct Imported {
  std::string key;  // as written in that file: `network.allowedDomains "example.com"`
  Outcome outcome = Outcome::kNotSupported;
  std::string text;  // what it became, or why it did not
};

struct Import {
  PolicyLayer layer;
  std::vector<Imported> rows;  // every key of the file that concerns a sandbox, in its order
};

// Never wider than the file: a value that cannot be carried exactly is left out and told. An error only when the text
// cannot be read at all.
[[nodiscard]] base::Result<Import> import_settings(ImportFormat format, std::string_view text, std::string_view name);

}  // namespace belljar::policy
