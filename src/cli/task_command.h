// `belljar task`: unattended launches with a phase, on storage of their own.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace belljar::cli {

[[nodiscard]] int task_command(const Context& context, std::span<const std::string> arguments);

}  // namespace belljar::cli
