// What an agent CLI needs to be started unattended, and how a phase is told to it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"
#include "tiers/docker/task/phase.h"

namespace belljar::tiers::docker::task {

// An agent CLI as a task knows it. Lives as long as the program. Checked against Claude Code 2.1.332 and Codex CLI
// 0.171.0.
struct Adapter {
  std::string_view agent;                    // its preset: "claude"
  std::string_view state_variable;           // names the folder of its state: "CODEX_HOME"
  std::string_view state_folder;             // where that is in the container
  std::string_view login;                    // name of its login's file in there
  std::span<const std::string_view> tokens;  // variables that can hold its credential
};

// Null for an agent whose phases nobody can hold it to.
[[nodiscard]] const Adapter* find_adapter(std::string_view agent);
[[nodiscard]] std::span<const Adapter> adapters();

// The command line: the phase's tools and commands, and nothing that a repository or a login's owner has configured.
// Codex CLI 0.171.0 has no such lists; what it may not, the container's mounts keep it from.
// `schema` is the path of the file that the answer has to follow, in the container, or empty; its text is
// `schema_text`.
// `model` as the CLI calls it, or empty: its own choice.
struct Order {
  Phase phase = Phase::kPlan;
  std::string_view prompt;
  std::string_view model{};
  std::string_view schema{};
  std::string_view schema_text{};
};
[[nodiscard]] std::vector<std::string> command_of(const Adapter& adapter, const Order& order);

// The tools that the phase leaves an agent, and the beginnings of commands that it may run by its shell.
[[nodiscard]] std::span<const std::string_view> tools_of(Phase phase);
[[nodiscard]] std::span<const std::string_view> commands_of(Phase phase);

}  // namespace belljar::tiers::docker::task
