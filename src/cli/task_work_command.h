// `belljar task inspect`, `export` and `commit`: what a task's agents have done, taken home.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"
#include "workspace/work_manifest.h"

namespace belljar::cli {

[[nodiscard]] int task_inspect_command(const Context& context, std::span<const std::string> arguments);
[[nodiscard]] int task_export_command(const Context& context, std::span<const std::string> arguments);
[[nodiscard]] int task_commit_command(const Context& context, std::span<const std::string> arguments);

// The manifest as JSON, on lines: base, digest, changes, objections. In ASCII.
[[nodiscard]] std::string manifest_json(const std::string& task, const workspace::Manifest& manifest);

}  // namespace belljar::cli
