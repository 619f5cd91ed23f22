// `belljar run`, `shell`, `plan` and `probe`: one set of arguments, from the policy to the plan.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/options.h"
#include "remote/launch_order.h"

namespace belljar::cli {

// The options of `run`, `shell`, `plan` or `probe`, for completions and the man page: they cannot be taken.
[[nodiscard]] std::vector<Option> options_of(std::string_view command);

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

// What the belljar of another machine orders, in this process, with the exit code that it is told. The work folder is
// the current one. The settlement goes to `report_descriptor`, which is taken; -1: nowhere.
[[nodiscard]] int launch_order(const Context& context, const remote::LaunchOrder& order, int report_descriptor);

}  // namespace belljar::cli
