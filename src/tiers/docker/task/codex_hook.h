// What holds Codex to the commands of a phase. It has no list of its own: its rules (execpolicy) refuse what they name
// and let the rest run. But it asks a hook before each command and each patch.
#pragma once

#include <string>

#include "tiers/docker/task/phase.h"

namespace belljar::tiers::docker::task {

// The hook, for a shell: a program for the image's node, in the command itself, that lets the phase's commands pass,
// alone and joined by `;`, `&&`, `||`, `|`, `&` and new lines, with redirections, and patches where the phase writes.
// Whatever else is asked for is refused by exit code 2: another command, one that is put together when it runs (`$(…)`,
// backquotes, variables as names), another tool, what it cannot read. So is everything when it fails itself.
[[nodiscard]] std::string codex_hook_command(Phase phase);

// As a value of Codex's configuration for `hooks.PreToolUse`, in TOML.
[[nodiscard]] std::string codex_hook(Phase phase);

}  // namespace belljar::tiers::docker::task
