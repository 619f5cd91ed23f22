// `belljar policy check|show FILE`.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace belljar::cli {

// `check` says in a line what the file permits, `show` prints the whole policy after merging, with the source of every
// setting. Returns the exit code: 0, or 125 with the place of what is wrong.
[[nodiscard]] int policy_command(const Context& context, std::span<const std::string> arguments);

}  // namespace belljar::cli
