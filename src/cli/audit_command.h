// `belljar audit verify FILE`.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace belljar::cli {

// Exits with 0 when the whole chain of the file holds, and with 1 when it does not.
[[nodiscard]] int audit_command(const Context& context, std::span<const std::string> arguments);

}  // namespace belljar::cli
