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

std::vector<std::string> below(const std::string& folder, std::vector<std::string> names) {
  for (std::string& name : names) name = folder + name;
  return names;
}

Agent claude() {
  Agent agent;
  agent.name = "claude";
  agent.commands = {"claude"};
  agent.config_files = {"~/.claude/.credentials.json"};
  agent.obeyed = below("~/.claude/", {"settings.json",
                                      "settings.local.json",
                                      "remote-settings.json",
                                      ".config.json",
                                      "CLAUDE.md",
                                      "rules",
                                      "commands",
                                      "agents",
                                      "agent-memory",
                                      "skills",
                                      "plugins",
                                      "cowork_plugins",
                                      "hooks",
                                      "workflows",
                                      "output-styles",
                                      "themes",
                                      "keybindings.json",
                                      "loop.md",
                                      "statusline.sh",
                                      "statusline-command.sh",
                                      "local",
                                      "daemon.json",
                                      "projects/{project}/memory"});
  // Not its shell-snapshots and session-env, which its shells read as scripts.
  agent.history = below(
      "~/.claude/", {"projects/{project}", "history.jsonl", "file-history", "todos", "tasks", "plans", "paste-cache"});
  // The rest of the file says which servers, tools and folders are trusted.
  agent.state_file = "~/.claude.json";
  agent.state_keys = {
      "oauthAccount",   "primaryApiKey", "userID",      "hasCompletedOnboarding", "lastOnboardingVersion", "theme",
      "firstStartTime", "numStartups",   "tipsHistory", "promptQueueUseCount"};
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
  agent.config_files = below("~/.codex/", {"auth.json", ".credentials.json", "installation_id"});
  agent.obeyed = below("~/.codex/", {"config.toml", "managed_config.toml", "requirements.toml", "hooks.json",
                                     "AGENTS.md", "AGENTS.override.md", "agents", "prompts", "skills", "plugins",
                                     "rules", "memories", "hooks", "environments", "packages"});
  // Its SQLite files are not here: two codex on different sides of a bind would corrupt them. They are an index of the
  // sessions, which it makes anew.
  agent.history = below("~/.codex/", {"sessions", "archived_sessions", "session_index.jsonl", "history.jsonl", "log"});
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
  agent.config_files = below("~/.gemini/", {"oauth_creds.json", "google_accounts.json", "installation_id", "user_id"});
  agent.obeyed = below("~/.gemini/",
                       {"settings.json", ".env", "GEMINI.md", "AGENTS.md", "commands", "agents", "skills", "extensions",
                        "policies", "hooks", "trustedFolders.json", "trusted_hooks.json", "acknowledgments",
                        "projects.json", "keybindings.json", "state.json", "tmp/{folder}/.project_root"});
  // Of its tmp only this: programs it downloads lie there too. And not its history folder, which holds git
  // repositories whose config git obeys.
  agent.history = below("~/.gemini/tmp/{folder}/", {"chats", "logs.json", "shell_history"});
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
