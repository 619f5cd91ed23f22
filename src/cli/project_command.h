// `belljar project`: the policy that holds for every launch in a folder.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace belljar::cli {

[[nodiscard]] int project_command(const Context& context, std::span<const std::string> arguments);

// The folder whose default counts in `folder`, a real path; `folder` when there is none yet.
[[nodiscard]] std::string project_folder_of(const std::string& folder);

// Allows `rule` (as policy::parse_host_rule() reads it) for the project that `folder`, a real path, belongs to: in its
// default policy, which is made when there is none.
[[nodiscard]] base::Status allow_in_project(const std::string& folder, const std::string& rule);

}  // namespace belljar::cli
