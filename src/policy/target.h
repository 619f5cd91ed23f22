// The machine a launch runs on. Pure.
#pragma once

#include <string>
#include <string_view>

#include "policy/verdict.h"

namespace belljar::policy {

inline constexpr std::string_view kLocalTarget = "local";
inline constexpr std::string_view kSshTarget = "ssh:";

// `local`, or `ssh:` and what ssh(1) takes as its destination: a name of the person's own ssh_config, `host`,
// `user@host`, or `ssh://[user@]host[:port]`. Nothing that ssh or a shell could take for something else: no word
// that begins with `-`, no space, quote, wildcard or control character.
[[nodiscard]] Verdict<std::string> parse_target(std::string_view text);

// The destination of an ssh target; empty for every other one.
[[nodiscard]] std::string_view ssh_destination(std::string_view target);

}  // namespace belljar::policy
