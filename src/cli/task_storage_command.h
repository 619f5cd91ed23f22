// `belljar task create`, `ls`, `rm` and `pool`: a task's storage and the memory that it takes.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"
#include "tiers/docker/reach.h"

namespace belljar::cli {

[[nodiscard]] int task_create_command(const Context& context, std::span<const std::string> arguments);
[[nodiscard]] int task_list_command(const Context& context, std::span<const std::string> arguments);
[[nodiscard]] int task_remove_command(const Context& context, std::span<const std::string> arguments);
[[nodiscard]] int task_pool_command(const Context& context, std::span<const std::string> arguments);

// Finishes, for `belljar recover`, what killed creations and removals left. False when something could not be done and
// was named. `count` grows by what was.
[[nodiscard]] bool recover_tasks(const Context& context, tiers::docker::Reach& reach, size_t& count);

}  // namespace belljar::cli
