// `belljar task run`: one phase of a task, sealed in a container of the task profile.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace belljar::cli {

// Exit codes as of `belljar run`.
[[nodiscard]] int task_run_command(const Context& context, std::span<const std::string> arguments);

}  // namespace belljar::cli
