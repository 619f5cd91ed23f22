// The command line of `belljar`.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace belljar::cli {

// `arguments` are those behind the program's name. Returns the exit code.
[[nodiscard]] int run_main(const Context& context, std::span<const std::string> arguments);

}  // namespace belljar::cli
