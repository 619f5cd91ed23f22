// `belljar recover`, and the same before every launch.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace belljar::cli {

int recover_command(const Context& context, std::span<const std::string> arguments);

// Finishes what dead sessions left, and says so. What cannot be finished is said too and stops no launch: it has
// waited before. Before anything of a launch is looked at, so that no plan takes what a dead session's guest made for
// the person's own.
void recover_before_launch(const Context& context, const std::string& folder);

}  // namespace belljar::cli
