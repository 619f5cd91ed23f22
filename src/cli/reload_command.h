// `belljar reload`: other rules for a session that runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/options.h"

namespace belljar::cli {

int reload_command(const Context& context, std::span<const std::string> arguments);
// For completions and the man page.
[[nodiscard]] std::vector<Option> reload_options_of();

}  // namespace belljar::cli
