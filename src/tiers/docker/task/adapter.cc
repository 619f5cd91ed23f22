#include "tiers/docker/task/adapter.h"

#include <algorithm>
#include <array>

#include "base/path.h"
#include "base/text.h"
#include "tiers/docker/task/codex_hook.h"

namespace belljar::tiers::docker::task {
namespace {

constexpr std::array<std::string_view, 3> kClaudeTokens = {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
                                                           "CLAUDE_CODE_OAUTH_TOKEN"};
constexpr std::array<std::string_view, 3> kCodexTokens = {"OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"};

constexpr std::array<Adapter, 2> kAdapters = {{
    {"claude", "CLAUDE_CONFIG_DIR", "/run/belljar-state/claude", ".credentials.json", kClaudeTokens},
    {"codex", "CODEX_HOME", "/run/belljar-state/codex", "auth.json", kCodexTokens},
}};

// Names of Claude Code's.
constexpr std::array<std::string_view, 3> kReadingTools = {"Read", "Grep", "Glob"};
constexpr std::array<std::string_view, 6> kWritingTools = {"Read", "Grep", "Glob", "Edit", "Write", "Bash"};

// Only ever what lists and prints: in a phase that may not write, the mounts stop the rest anyway.
constexpr std::array<std::string_view, 12> kReadingCommands = {"ls", "cat",  "head", "tail",     "wc",      "grep",
                                                               "rg", "find", "stat", "git diff", "git log", "git show"};
constexpr std::array<std::string_view, 38> kWritingCommands = {
    "ls",      "cat",      "head",       "tail",  "wc",   "grep", "rg",     "find",    "stat",  "git diff",
    "git log", "git show", "git status", "sed",   "awk",  "sort", "uniq",   "diff",    "mkdir", "cp",
    "mv",      "rm",       "touch",      "chmod", "node", "npm",  "npx",    "python3", "make",  "cmake",
    "ninja",   "cargo",    "go",         "gcc",   "g++",  "tsc",  "pytest", "jq"};

std::vector<std::string> claude_command(const Order& order) {
  std::vector<std::string> out = {"claude", "-p"};
  const auto option = [&](std::string_view name, std::string value) {
    out.emplace_back(name);
    out.push_back(std::move(value));
  };
  const auto tools = tools_of(order.phase);
  option("--tools", base::join(std::vector<std::string>(tools.begin(), tools.end()), ","));
  std::string allowed;
  for (const std::string_view tool : tools) {
    if (tool == "Bash") continue;
    allowed.append(allowed.empty() ? "" : ",").append(tool);
  }
  if (std::ranges::find(tools, "Bash") != tools.end()) {
    for (const std::string_view command : commands_of(order.phase)) {
      allowed.append(",Bash(").append(command).append(":*)");
    }
  }
  option("--allowedTools", std::move(allowed));
  // What is not allowed is refused and not asked about; nothing that the repository brings counts, nor hooks.
  option("--permission-mode", "dontAsk");
  option("--setting-sources", "");
  option("--settings", R"({"sandbox":{"enabled":false},"disableAllHooks":true})");
  out.emplace_back("--strict-mcp-config");
  // Its commands and tools read below the work folder alone, unless told.
  if (!order.schema.empty()) option("--add-dir", base::parent_of(order.schema));
  if (!order.model.empty()) option("--model", std::string(order.model));
  if (!order.schema_text.empty()) {
    option("--output-format", "json");
    option("--json-schema", std::string(order.schema_text));
  }
  out.emplace_back("--");
  out.emplace_back(order.prompt);
  return out;
}

// Its tools read and write alike: what a phase may not write is for the mounts to hold, and a hook holds the commands.
std::vector<std::string> codex_command(const Order& order) {
  std::vector<std::string> out = {"codex", "exec", "--skip-git-repo-check", "--ephemeral"};
  const auto setting = [&](std::string text) {
    out.emplace_back("-c");
    out.push_back(std::move(text));
  };
  // Its inner sandbox needs namespaces of its own: the container's mounts hold the phase.
  setting(R"(sandbox_mode="danger-full-access")");
  setting(R"(approval_policy="never")");
  setting("web_search=\"disabled\"");
  setting("hooks.PreToolUse=" + codex_hook(order.phase));
  // That is, without a person who has looked at it before; it is ours.
  out.emplace_back("--dangerously-bypass-hook-trust");
  setting("project_doc_max_bytes=0");
  if (!order.model.empty()) {
    out.emplace_back("--model");
    out.emplace_back(order.model);
  }
  if (!order.schema.empty()) {
    out.emplace_back("--output-schema");
    out.emplace_back(order.schema);
  }
  out.emplace_back("--");
  out.emplace_back(order.prompt);
  return out;
}

}  // namespace

const Adapter* find_adapter(std::string_view agent) {
  const auto found = std::ranges::find(kAdapters, agent, &Adapter::agent);
  return found == kAdapters.end() ? nullptr : &*found;
}

std::span<const Adapter> adapters() {
  return kAdapters;
}

std::span<const std::string_view> tools_of(Phase phase) {
  return may_write(phase) ? std::span<const std::string_view>(kWritingTools)
                          : std::span<const std::string_view>(kReadingTools);
}

std::span<const std::string_view> commands_of(Phase phase) {
  return may_write(phase) ? std::span<const std::string_view>(kWritingCommands)
                          : std::span<const std::string_view>(kReadingCommands);
}

std::vector<std::string> command_of(const Adapter& adapter, const Order& order) {
  return adapter.agent == "claude" ? claude_command(order) : codex_command(order);
}

}  // namespace belljar::tiers::docker::task
