// `belljar run`, `shell`, `plan` and `probe`: one set of arguments, from the policy to the plan.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace belljar::cli {

// `arguments` are those behind the subcommand's name. Each returns the exit code of `belljar`.

// The command's own code, 128+n for a signal, 124 at the deadline, 125 for Belljar's failure, 126 and 127 when the
// command cannot be executed or is not there.
[[nodiscard]] int run_command(const Context& context, std::span<const std::string> arguments);
// The same with the person's shell.
[[nodiscard]] int shell_command(const Context& context, std::span<const std::string> arguments);
// Prints the plan and runs nothing.
[[nodiscard]] int plan_command(const Context& context, std::span<const std::string> arguments);
// Starts a guest, lets it prove itself, prints the evidence and ends it.
[[nodiscard]] int probe_command(const Context& context, std::span<const std::string> arguments);

}  // namespace belljar::cli
