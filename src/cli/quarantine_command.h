// `belljar quarantine`: what sessions have put away.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace belljar::cli {

int quarantine_command(const Context& context, std::span<const std::string> arguments);

}  // namespace belljar::cli
