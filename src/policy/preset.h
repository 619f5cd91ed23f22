// What Belljar knows about agents and package registries without being told.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace belljar::policy {

// The built-in agent of that name (`claude`, `codex`, `gemini`), or null. Lives as long as the program.
// Checked against Claude Code 2.1.332, Codex CLI 0.171.0 and Gemini CLI 0.61.0; docs/policy.md lists each fact.
[[nodiscard]] const Agent* find_agent(std::string_view name);

// The built-in agent that the program `command` (a name or a path) starts, or null.
[[nodiscard]] const Agent* find_agent_of_command(std::string_view command);

// Takes from `agent` what tells its CLI that a boundary is there: the extra arguments by which its inner sandbox steps
// aside, and IS_SANDBOX and GEMINI_SANDBOX. For launches without a boundary.
void keep_inner_sandbox(Agent& agent);

// Names of the built-in agents, in order.
[[nodiscard]] std::vector<std::string_view> agent_names();

// Hosts that `extends` can add by name: "npm", "pypi", "crates", "go", "debian", "rubygems", "maven", "github", and
// "registries" (all of them but "github", which can be written to as well as read). Null when there is no such set.
struct HostSet {
  std::string name;
  std::vector<std::string> hosts;
};
[[nodiscard]] const HostSet* find_host_set(std::string_view name);
[[nodiscard]] std::vector<std::string_view> host_set_names();

}  // namespace belljar::policy
