#include "policy/preset.h"

#include <algorithm>

namespace belljar::policy {
namespace {

const std::vector<HostSet>& host_sets() {
  static const std::vector<HostSet> sets = [] {
    std::vector<HostSet> all = {
        // codeload serves the tarballs of dependencies that a lock file names by repository.
        {"npm", {"registry.npmjs.org", "registry.yarnpkg.com", "codeload.github.com"}},
        {"pypi", {"pypi.org", "files.pythonhosted.org"}},
        {"crates", {"crates.io", "index.crates.io", "static.crates.io"}},
        {"go", {"proxy.golang.org", "sum.golang.org"}},
        {"rubygems", {"rubygems.org", "index.rubygems.org"}},
        {"maven", {"repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org"}},
        {"debian", {"deb.debian.org", "security.debian.org"}},
    };
    HostSet registries{"registries", {}};
    for (const HostSet& set : all) {
      registries.hosts.insert(registries.hosts.end(), set.hosts.begin(), set.hosts.end());
    }
    all.push_back(std::move(registries));
    // A push, a gist or an issue leaves through the same host a clone comes from.
    all.push_back({"github",
                   {"github.com", "api.github.com", "codeload.github.com", "raw.githubusercontent.com",
                    "objects.githubusercontent.com", "release-assets.githubusercontent.com"}});
    return all;
  }();
  return sets;
}

Agent claude() {
  Agent agent;
  agent.name = "claude";
  agent.commands = {"claude"};
  agent.config_dirs = {"~/.claude"};
  agent.config_files = {"~/.claude.json"};
  agent.credential_env = {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"};
  agent.hosts = {"api.anthropic.com", "claude.ai", "claude.com", "platform.claude.com", "console.anthropic.com"};
  // IS_SANDBOX: started as root, the CLI refuses --dangerously-skip-permissions without it.
  // DISABLE_AUTOUPDATER: its own files are read-only in a guest, so an update can only fail.
  agent.env = {{"IS_SANDBOX", "1"}, {"DISABLE_AUTOUPDATER", "1"}};
  // Its inner sandbox needs namespaces of its own; left on, its shell tool fails. Accepted before every subcommand.
  agent.extra_arguments = {"--settings", R"({"sandbox":{"enabled":false}})"};
  return agent;
}

Agent codex() {
  Agent agent;
  agent.name = "codex";
  agent.commands = {"codex"};
  agent.config_dirs = {"~/.codex"};
  agent.credential_env = {"OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"};
  agent.hosts = {"api.openai.com", "auth.openai.com", "chatgpt.com"};
  // `-c` holds for `codex …` and `codex exec …` alike, and a --sandbox of the person still counts; `--sandbox` here
  // would make theirs an error ("cannot be used multiple times").
  agent.extra_arguments = {"-c", R"(sandbox_mode="danger-full-access")"};
  return agent;
}

Agent gemini() {
  Agent agent;
  agent.name = "gemini";
  agent.commands = {"gemini"};
  agent.config_dirs = {"~/.gemini", "~/.config/gemini"};
  agent.credential_env = {"GEMINI_API_KEY", "GOOGLE_API_KEY"};
  agent.hosts = {"generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com",
                 "accounts.google.com"};
  // Wins over --sandbox and over its settings: containers cannot be started from a guest.
  agent.env = {{"GEMINI_SANDBOX", "false"}};
  return agent;
}

const std::vector<Agent>& agents() {
  static const std::vector<Agent> all = [] {
    std::vector<Agent> list = {claude(), codex(), gemini()};
    for (Agent& agent : list) agent.registries = find_host_set("registries")->hosts;
    return list;
  }();
  return all;
}

}  // namespace

const Agent* find_agent(std::string_view name) {
  const auto found = std::find_if(agents().begin(), agents().end(), [&](const Agent& a) { return a.name == name; });
  return found == agents().end() ? nullptr : &*found;
}

const Agent* find_agent_of_command(std::string_view command) {
  const std::string_view program = command.substr(command.rfind('/') + 1);
  for (const Agent& agent : agents()) {
    if (std::find(agent.commands.begin(), agent.commands.end(), program) != agent.commands.end()) return &agent;
  }
  return nullptr;
}

void keep_inner_sandbox(Agent& agent) {
  agent.extra_arguments.clear();
  agent.env.erase("IS_SANDBOX");
  agent.env.erase("GEMINI_SANDBOX");
}

std::vector<std::string_view> agent_names() {
  std::vector<std::string_view> names;
  for (const Agent& agent : agents()) names.emplace_back(agent.name);
  return names;
}

const HostSet* find_host_set(std::string_view name) {
  const auto& sets = host_sets();
  const auto found = std::find_if(sets.begin(), sets.end(), [&](const HostSet& set) { return set.name == name; });
  return found == sets.end() ? nullptr : &*found;
}

std::vector<std::string_view> host_set_names() {
  std::vector<std::string_view> names;
  for (const HostSet& set : host_sets()) names.emplace_back(set.name);
  return names;
}

}  // namespace belljar::policy
