#include "policy/preset.h"

#include <gtest/gtest.h>

#include "policy/host_rule.h"

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

TEST(Preset, KnowsTheThreeAgentsAndTheirOwnPathsOnly) {
  EXPECT_EQ(find_agent("claude")->config_dirs, std::vector<std::string>{"~/.claude"});
  EXPECT_EQ(find_agent("claude")->config_files, std::vector<std::string>{"~/.claude.json"});
  EXPECT_EQ(find_agent("codex")->config_dirs, std::vector<std::string>{"~/.codex"});
  EXPECT_EQ(find_agent("gemini")->config_dirs, (std::vector<std::string>{"~/.gemini", "~/.config/gemini"}));
  EXPECT_EQ(find_agent("aider"), nullptr);
  EXPECT_EQ(find_agent(""), nullptr);
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
