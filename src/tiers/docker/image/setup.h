// What is done inside the container that becomes the image.
#pragma once

#include <string>
#include <vector>

#include "tiers/docker/image/lock.h"

namespace belljar::tiers::docker::image {

inline constexpr const char* kAgentsFolder = "/opt/belljar/agents";
inline constexpr const char* kProgramsFolder = "/usr/local/bin";
inline constexpr unsigned kAgentUid = 10001;  // a task's user, `agent`

// A script for a POSIX shell with tar and gzip: unpacks the packages of make_archive() in the layout of node_modules,
// owned by root and writable by nobody else, links the programs of those that were asked for, makes the user, and runs
// the one install script that is needed (install_script()). It ends with an error at the first thing that fails.
[[nodiscard]] std::string setup_script(const Lock& lock);

// The file below the package that has to be run by node once it is unpacked; null for every package but
// @anthropic-ai/claude-code, whose program is otherwise a stub. No other script of any package is run, ever.
[[nodiscard]] const char* install_script(const Package& package);

// A program that the finished image must have.
struct Tool {
  std::string name;
  std::string version;  // a word of what `NAME --version` prints; empty: it only has to work
};

// The programs of what the lock asks for, and what a task's helpers need: sh, tar and git.
[[nodiscard]] std::vector<Tool> tools_of(const Lock& lock);

// Prints each tool's name and, on the lines below it, what it says of its version: `> NAME`, `LINE`…
[[nodiscard]] std::string check_script(const std::vector<Tool>& tools);

// Refuses unless `output` of check_script() names every tool with its version, as a word of its own.
[[nodiscard]] base::Status check_versions(const std::vector<Tool>& tools, const std::string& output);

}  // namespace belljar::tiers::docker::image
