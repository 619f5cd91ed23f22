// What an agent keeps in the home, and what the guest gets of each part.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/draft.h"
#include "plan/facts.h"
#include "policy/policy.h"

namespace belljar::plan {

// The paths of the agent that are one file or folder each on this host, expanded. A path whose `{project}` has no value
// for this folder is left out.
struct AgentPath {
  std::string text;  // as the preset says it, for messages
  std::string path;  // normal; below the home as the person names it
};
[[nodiscard]] base::Result<std::vector<AgentPath>> agent_paths(const std::vector<std::string>& texts,
                                                               const Facts& facts, const Request& request);

// The name that Claude Code gives to the folder `path`: each UTF-16 unit but ASCII letters and digits is a `-`. Empty
// for more than 200 units, where it appends a number of its own making (checked against 2.1.332).
[[nodiscard]] std::string project_name(std::string_view path);

// The folder that the command starts in.
[[nodiscard]] base::Result<std::string> start_folder(const Facts& facts, const Request& request);

// The name that Gemini CLI gives to the folder `path`, from its last component. It appends `-1`, `-2`, … where the file
// kFolderMarker in `~/.gemini/tmp/NAME` holds the path of another folder (checked against 0.61.0).
[[nodiscard]] std::string folder_name(std::string_view path);
inline constexpr std::string_view kFolderMarker = "/{folder}/.project_root";

// The agent's login, settings and history. What is missing and is neither login, state nor history stays missing: the
// guest's home is its own. What belongs to another user is left out with a note. Refuses settings that the guest could
// write by another way.
[[nodiscard]] base::Status add_agent_files(Draft& draft);

}  // namespace belljar::plan
