// `belljar trust`: a person reads what a project's own policy file widens, and lets it count.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace belljar::cli {

[[nodiscard]] int trust_command(const Context& context, std::span<const std::string> arguments);

}  // namespace belljar::cli
