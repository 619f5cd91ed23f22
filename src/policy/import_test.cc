#include "policy/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/host_rule.h"
#include "policy/merge.h"

namespace belljar::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// `outcome key` of each row.
std::vector<std::string> rows(const base::Result<Import>& imported) {
  if (!imported) return {imported.error().message()};
  std::vector<std::string> out;
  for (const Imported& row : imported->rows) out.push_back(std::string(to_text(row.outcome)) + ": " + row.key);
  return out;
}

std::vector<std::string> values(const std::vector<Said<std::string>>& list) {
  std::vector<std::string> out;
  for (const auto& said : list) out.push_back(said.value);
  return out;
}

std::vector<std::string> values(const std::vector<HostRule>& list) {
  std::vector<std::string> out;
  for (const auto& rule : list) out.push_back(to_text(rule));
  return out;
}

TEST(Import, ReadsTheRuntimesSettings) {
  const auto imported = import_settings(ImportFormat::kSrt, R"x({
    "network": {"allowedDomains": ["Example.com", "*.example.org", "http://x/"], "deniedDomains": ["a.example.org"],
                "allowUnixSockets": ["/run/docker.sock"], "allowLocalBinding": false},
    "filesystem": {"denyRead": ["~/.ssh"], "allowWrite": [".", "/tmp/build", "~/out"], "denyWrite": ["./src", "~/out"]},
    "enableWeakerNestedSandbox": true,
    "somethingNew": {"x": 1}
  })x",
                                        "s.json");
  EXPECT_THAT(rows(imported),
              ElementsAre("carried: network.allowedDomains \"Example.com\"",
                          "carried: network.allowedDomains \"*.example.org\"",
                          "not supported: network.allowedDomains \"http://x/\"",
                          "carried: network.deniedDomains \"a.example.org\"", "stricter here: network.allowUnixSockets",
                          "carried: network.allowLocalBinding", "carried: filesystem.denyRead \"~/.ssh\"",
                          "carried: filesystem.allowWrite \".\"", "stricter here: filesystem.allowWrite \"/tmp/build\"",
                          "carried: filesystem.allowWrite \"~/out\"", "carried: filesystem.denyWrite \"./src\"",
                          "WIDER HERE: filesystem.denyWrite \"~/out\"", "stricter here: enableWeakerNestedSandbox",
                          "not supported: somethingNew"));
  ASSERT_TRUE(imported);
  EXPECT_THAT(values(imported->layer.allow_hosts), ElementsAre("example.com", "*.example.org"));
  EXPECT_THAT(values(imported->layer.deny_hosts), ElementsAre(HasSubstr("a.example.org")));
  EXPECT_THAT(values(imported->layer.hide), ElementsAre("~/.ssh"));
  EXPECT_THAT(values(imported->layer.write), ElementsAre("~/out"));
  EXPECT_THAT(values(imported->layer.read), ElementsAre("./src"));
}

TEST(Import, ReadsClaudesSandboxAndPermissions) {
  const auto imported = import_settings(ImportFormat::kClaude, R"x({
    "model": "x", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "rm"}]}]},
    "sandbox": {"enabled": true, "excludedCommands": ["docker"], "network": {"allowedDomains": ["a.test"]},
                "filesystem": {"allowWrite": ["/data"]}},
    "permissions": {"allow": ["Bash(npm run *)", "WebFetch(domain:b.test)", "Edit(//srv/x)", "Read(/here)"],
                    "deny": ["Read(~/.aws)", "WebFetch(domain:c.test)", "Read(./.env)", "Read(/here)"],
                    "additionalDirectories": ["../docs"]
}
})x",
                                        "settings.json");
  EXPECT_THAT(
      rows(imported),
      ElementsAre(
          "stricter here: sandbox.enabled", "stricter here: sandbox.excludedCommands",
          "carried: sandbox.network.allowedDomains \"a.test\"", "carried: sandbox.filesystem.allowWrite \"/data\"",
          "not supported: permissions.allow \"Bash(npm run *)\"",
          "carried: permissions.allow \"WebFetch(domain:b.test)\"", "carried: permissions.allow \"Edit(//srv/x)\"",
          "not supported: permissions.allow \"Read(/here)\"", "carried: permissions.deny \"Read(~/.aws)\"",
          "carried: permissions.deny \"WebFetch(domain:c.test)\"", "carried: permissions.deny \"Read(./.env)\"",
          "WIDER HERE: permissions.deny \"Read(/here)\"", "carried: permissions.additionalDirectories \"../docs\""));
  ASSERT_TRUE(imported);
  EXPECT_THAT(values(imported->layer.allow_hosts), ElementsAre("a.test", "b.test"));
  EXPECT_THAT(values(imported->layer.write), ElementsAre("/data", "/srv/x", "../docs"));
  EXPECT_THAT(values(imported->layer.hide), ElementsAre("~/.aws", "./.env"));
}

TEST(Import, ReadsCodexsSandbox) {
  const auto imported = import_settings(ImportFormat::kCodex, R"x(
model = "x"
sandbox_mode = "workspace-write"
approval_policy = "never"
[sandbox_workspace_write]
writable_roots = ["/data"]
network_access = true
[shell_environment_policy]
inherit = "all"
set = { CI = "1", LD_PRELOAD = "/x" }
)x",
                                        "config.toml");
  EXPECT_THAT(rows(imported),
              ::testing::UnorderedElementsAre(
                  "carried: sandbox_mode \"workspace-write\"", "stricter here: sandbox_workspace_write.network_access",
                  "not supported: approval_policy", "carried: sandbox_workspace_write.writable_roots \"/data\"",
                  "stricter here: shell_environment_policy.inherit", "carried: shell_environment_policy.set.CI",
                  "not supported: shell_environment_policy.set.LD_PRELOAD"));
  ASSERT_TRUE(imported);
  EXPECT_THAT(values(imported->layer.write), ElementsAre("/data"));
  EXPECT_EQ(imported->layer.env_set.size(), 1U);
}

TEST(Import, SaysWhereOursAllowsMore) {
  const auto imported = import_settings(ImportFormat::kCodex, "sandbox_mode = \"read-only\"\n", "config.toml");
  EXPECT_THAT(rows(imported), ElementsAre("WIDER HERE: sandbox_mode \"read-only\"",
                                          "WIDER HERE: sandbox_workspace_write.network_access (absent)"));
}

TEST(Import, TellsOfEveryProfileThatCodexMayUseInstead) {
  const auto imported = import_settings(ImportFormat::kCodex, R"x(
sandbox_mode = "workspace-write"
sandbox_workspace_write.network_access = true
default_permissions = "careful"
profile = "night"
[permissions.careful.filesystem]
"~/.ssh" = "none"
[permissions.careful.network]
enabled = false
[profiles.night]
model = "x"
sandbox_mode = "read-only"
[projects."/srv/x"]
trust_level = "trusted"
)x",
                                        "config.toml");
  EXPECT_THAT(rows(imported),
              ::testing::UnorderedElementsAre(
                  "carried: sandbox_mode \"workspace-write\"", "stricter here: sandbox_workspace_write.network_access",
                  "not supported: default_permissions \"careful\"", "not supported: profile \"night\"",
                  "WIDER HERE: permissions.careful", "not supported: profiles.night.sandbox_mode",
                  "not supported: projects./srv/x.trust_level"));
}

TEST(Import, NeverOpensANetworkOrABoundary) {
  for (const auto format : {ImportFormat::kClaude, ImportFormat::kSrt, ImportFormat::kCodex}) {
    const auto imported =
        import_settings(format, R"x({"sandbox_mode": "danger-full-access", "sandbox": {"enabled": false},
                                    "network": "allow", "mode": "none", "isolation": {"network": "allow"}})x",
                        "x.json");
    ASSERT_TRUE(imported);
    EXPECT_FALSE(imported->layer.mode);
    EXPECT_FALSE(imported->layer.network);
    const auto policy = merge(std::vector{built_in_layer(), imported->layer});
    ASSERT_TRUE(policy);
    EXPECT_THAT(policy->isolation.allow_hosts, IsEmpty());
  }
}

TEST(Import, RefusesWhatItCannotRead) {
  EXPECT_THAT(import_settings(ImportFormat::kSrt, "{", "s.json").error().message(), HasSubstr("s.json:1"));
}

}  // namespace
}  // namespace belljar::policy
