#include "policy/preset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "policy/host_rule.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

TEST(Preset, EveryBuiltInHostIsCanonical) {
  std::vector<std::string> hosts;
  for (const auto name : agent_names()) {
    const Agent* agent = find_agent(name);
    ASSERT_NE(agent, nullptr);
    hosts.insert(hosts.end(), agent->hosts.begin(), agent->hosts.end());
    hosts.insert(hosts.end(), agent->registries.begin(), agent->registries.end());
  }
  for (const auto name : host_set_names()) {
    const HostSet* set = find_host_set(name);
    ASSERT_NE(set, nullptr);
    hosts.insert(hosts.end(), set->hosts.begin(), set->hosts.end());
  }
  for (const auto& host : hosts) {
    const auto rule = parse_host_rule(host, "");
    ASSERT_TRUE(rule) << rule.error().message();
    EXPECT_EQ(to_text(*rule), host);
  }
  EXPECT_GT(hosts.size(), 50U);
}

// What a later run executes or obeys must never be the agent's to write, and no path may be said twice.
TEST(Preset, GivesEachPathOfTheHomeOneMeaning) {
  for (const auto name : agent_names()) {
    const Agent& agent = *find_agent(name);
    EXPECT_TRUE(agent.config_dirs.empty()) << name;
    std::set<std::string> seen;
    for (const auto* list : {&agent.config_files, &agent.obeyed, &agent.history}) {
      EXPECT_FALSE(list->empty()) << name;
      for (const std::string& path : *list) {
        EXPECT_EQ(parse_home_path(path), path);
        EXPECT_TRUE(seen.insert(path).second) << path;
      }
    }
  }
  EXPECT_EQ(find_agent("aider"), nullptr);
  EXPECT_EQ(find_agent(""), nullptr);
}

TEST(Preset, LetsNoHistoryHoldWhatIsExecuted) {
  for (const char* path : {"~/.claude/shell-snapshots", "~/.claude/session-env", "~/.claude/projects", "~/.gemini/tmp",
                           "~/.gemini/history", "~/.claude", "~/.codex", "~/.gemini"}) {
    for (const auto name : agent_names()) {
      const Agent& agent = *find_agent(name);
      EXPECT_EQ(std::count(agent.history.begin(), agent.history.end(), path), 0) << path;
    }
  }
}

TEST(Preset, TakesNothingThatGivesTrustFromTheStateFile) {
  for (const char* key : {"mcpServers", "projects", "customApiKeyResponses", "allowedTools", "hasTrustDialogAccepted",
                          "bypassPermissionsModeAccepted", "env", "hooks"}) {
    const auto& keys = find_agent("claude")->state_keys;
    EXPECT_EQ(std::count(keys.begin(), keys.end(), key), 0) << key;
  }
}

TEST(Preset, FindsTheAgentBehindACommand) {
  EXPECT_EQ(find_agent_of_command("claude"), find_agent("claude"));
  EXPECT_EQ(find_agent_of_command("/opt/x/bin/codex"), find_agent("codex"));
  EXPECT_EQ(find_agent_of_command("claude-wrapper"), nullptr);
  EXPECT_EQ(find_agent_of_command("/opt/claude/run"), nullptr);
}

// Hosts anyone can write to must be asked for: a sealed agent could push what it read.
TEST(Preset, RegistriesLeaveOutHostsThatTakePushes) {
  for (const auto& host : find_host_set("registries")->hosts) {
    EXPECT_NE(host, "github.com");
    EXPECT_NE(host, "api.github.com");
  }
}

}  // namespace
}  // namespace belljar::policy
