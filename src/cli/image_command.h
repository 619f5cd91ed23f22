// `belljar image`: images of agents, and which of them Belljar has built.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace belljar::cli {

int image_command(const Context& context, std::span<const std::string> arguments);

}  // namespace belljar::cli
