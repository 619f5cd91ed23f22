#include "plan/agent_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_fixture.h"

namespace belljar::plan {
namespace {

using ::testing::HasSubstr;

constexpr const char* kProject = "/home/alice/.claude/projects/-home-alice-work";

const Kept* kept_at(const Plan& plan, std::string_view path) {
  const auto found = std::ranges::find(plan.kept, path, &Kept::path);
  return found == plan.kept.end() ? nullptr : &*found;
}

TEST(ProjectName, IsTheOneThatClaudeCodeGives) {
  EXPECT_EQ(project_name("/home/alice/my.pro_ject 2"), "-home-alice-my-pro-ject-2");
  EXPECT_EQ(project_name("/\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80x"), "-----x");  // one unit each, two for the last
  EXPECT_EQ(project_name("/a\xff\xfe"), "-a--");
  EXPECT_EQ(project_name("/a\xe2\x82"), "-a--");
  EXPECT_EQ(project_name("/" + std::string(199, 'a')).size(), 200U);
  EXPECT_EQ(project_name("/" + std::string(200, 'a')), "");
}

TEST(FolderName, IsTheOneThatGeminiCliGives) {
  EXPECT_EQ(folder_name("/home/alice/My  Project_2"), "my-project-2");
  EXPECT_EQ(folder_name("/x/.dot."), "dot");
  EXPECT_EQ(folder_name("/x/\xff\xff"), "project");
}

// Else the agent would rename the folder between, and make it anew.
TEST(AgentFiles, WhatIsObeyedDeepInAHistoryStaysInItsPlace) {
  Host host;
  host.agent();
  host.policy.agent.obeyed = {"~/.claude/projects/{project}/a/b/rules"};
  for (const char* path : {"", "/a", "/a/b", "/a/b/rules"}) host.folder(std::string(kProject) + path);
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  for (const char* path : {"/a", "/a/b"}) {
    const Mount* held = mount_at(*plan, std::string(kProject) + path);
    ASSERT_NE(held, nullptr) << path;
    EXPECT_TRUE(held->writable);
    EXPECT_EQ(held->source, std::string(kProject) + path);
  }
  EXPECT_FALSE(mount_at(*plan, std::string(kProject) + "/a/b/rules")->writable);
}

// From a mount namespace of its own making the agent could rename what is mounted in a history that it may write.
TEST(AgentFiles, NestedLeavesOutTheHistoryWithSettingsInIt) {
  Host host;
  host.agent();
  host.policy.isolation.nested = true;
  host.folder(kProject);
  host.folder(std::string(kProject) + "/memory");
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, kProject), nullptr);
  EXPECT_FALSE(mount_at(*plan, std::string(kProject) + "/memory")->writable);
  EXPECT_THAT(plan->notes, ::testing::Contains(::testing::HasSubstr("nested = true")));
}

TEST(AgentFiles, SettingsAreReadOnlyHistoryIsNotAndLoginsAreCopies) {
  Host host;
  host.agent();
  host.file("/home/alice/.claude/settings.json");
  host.folder("/home/alice/.claude/hooks");
  host.folder(kProject);
  host.folder(std::string(kProject) + "/memory");
  host.file("/home/alice/.claude/login.json");
  host.file("/home/alice/.claude.json");
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  for (const char* path : {"/home/alice/.claude/settings.json", "/home/alice/.claude/hooks"}) {
    ASSERT_NE(mount_at(*plan, path), nullptr) << path;
    EXPECT_EQ(mount_at(*plan, path)->kind, MountKind::kBind);
    EXPECT_FALSE(mount_at(*plan, path)->writable);
  }
  EXPECT_TRUE(mount_at(*plan, kProject)->writable);
  EXPECT_FALSE(mount_at(*plan, std::string(kProject) + "/memory")->writable);
  EXPECT_EQ(mount_at(*plan, "/home/alice/.claude/login.json")->kind, MountKind::kCopy);
  EXPECT_EQ(mount_at(*plan, "/home/alice/.claude.json")->kind, MountKind::kCopy);
  EXPECT_EQ(mount_at(*plan, "/home/alice/.claude"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/home/alice/.claude/todos"), nullptr);
  EXPECT_EQ(kept_at(*plan, "/home/alice/.claude/login.json")->kind, KeptKind::kLogin);
  EXPECT_EQ(kept_at(*plan, "/home/alice/.claude.json")->kind, KeptKind::kState);
  EXPECT_EQ(kept_at(*plan, "/home/alice/.claude.json")->keys, std::vector<std::string>{"userID"});
  EXPECT_EQ(kept_at(*plan, "/home/alice/.claude/todos")->kind, KeptKind::kHistory);
  EXPECT_EQ(kept_at(*plan, kProject), nullptr);
  EXPECT_EQ(plan->private_home, "/home/alice");
  EXPECT_TRUE(plan->weakenings.empty());
}

TEST(AgentFiles, AFirstLoginAndAFirstHistoryAreTakenOver) {
  Host host;
  host.agent();
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(kept_at(*plan, "/home/alice/.claude/login.json")->kind, KeptKind::kLogin);
  EXPECT_EQ(kept_at(*plan, "/home/alice/.claude.json")->kind, KeptKind::kState);
  EXPECT_EQ(kept_at(*plan, kProject)->kind, KeptKind::kHistory);
  // Memory must not come along with the history around it.
  EXPECT_EQ(kept_at(*plan, std::string(kProject) + "/memory")->kind, KeptKind::kForbidden);
  EXPECT_EQ(kept_at(*plan, "/home/alice/.claude/settings.json"), nullptr);
}

TEST(AgentFiles, BehindLinksOfThePersonsStandUnderTheirOwnName) {
  Host host;
  host.agent();
  const auto linked = [&](const std::string& name, FileKind kind) {
    host.facts.paths["/home/alice/.claude" + name] =
        through_link(path_fact(kind, "/data/dots/claude" + name, 1000), "/home/alice/.claude", "/data/dots/claude");
  };
  linked("/settings.json", FileKind::kFile);
  linked("/projects/-home-alice-work", FileKind::kFolder);
  linked("/login.json", FileKind::kAbsent);
  host.facts.paths["/home/alice/.claude.json"] = through_link(
      path_fact(FileKind::kFile, "/data/dots/claude.json", 1000), "/home/alice/.claude.json", "/data/dots/claude.json");
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, "/home/alice/.claude"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/home/alice/.claude/settings.json")->source, "/data/dots/claude/settings.json");
  EXPECT_EQ(mount_at(*plan, kProject)->source, "/data/dots/claude/projects/-home-alice-work");
  EXPECT_EQ(kept_at(*plan, "/data/dots/claude/login.json")->inside, "/home/alice/.claude/login.json");
  EXPECT_EQ(kept_at(*plan, "/data/dots/claude.json")->inside, "/home/alice/.claude.json");
}

TEST(AgentFiles, ThatTheAgentCanWriteByAnotherWayAreRefused) {
  Host host;
  host.agent();
  host.facts.paths["/home/alice/.claude/settings.json"] = through_link(
      path_fact(FileKind::kFile, "/home/alice/work/claude/settings.json", 1000), "/home/alice/.claude", "work/claude");
  EXPECT_THAT(
      host.refusal(),
      HasSubstr("agent claude '~/.claude/settings.json': it leads to '/home/alice/work/claude/settings.json', by "
                "way of what the agent can write, refusing"));
  // A link in the work folder, of whoever's making, to somewhere else.
  host.facts.paths["/home/alice/.claude/settings.json"] =
      through_link(through_link(path_fact(FileKind::kFile, "/etc/passwd", 0), "/home/alice/.claude", "work/c"),
                   "/home/alice/work/c", "/etc");
  EXPECT_THAT(host.refusal(), HasSubstr("by way of what the agent can write, refusing"));
}

TEST(AgentFiles, NoLinkInTheHistoryShowsALaterGuestAFile) {
  Host host;
  host.agent();
  host.folder(kProject);
  const std::string memory = std::string(kProject) + "/memory";
  host.facts.paths[memory] =
      through_link(path_fact(FileKind::kFolder, "/home/alice/.ssh", 1000), memory, "/home/alice/.ssh");
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, memory), nullptr);
  EXPECT_TRUE(any_contains(plan->notes, "is a link in the agent's history and was left out"));
}

TEST(AgentFiles, HistoryThatLeadsToTheHomeIsRefused) {
  Host host;
  host.agent();
  host.facts.paths["/home/alice/.claude/todos"] =
      through_link(path_fact(FileKind::kFolder, "/home/alice", 1000), "/home/alice/.claude/todos", "..");
  EXPECT_THAT(host.refusal(), HasSubstr("it leads to '/home/alice': it is the home"));
}

TEST(AgentFiles, OfRootAreNoneOfAnOwnersAgent) {
  Host host(true);
  host.agent();
  host.file("/root/.claude.json", 0, 0600);
  host.folder("/root/.claude/todos", 0);
  auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, "/root/.claude.json"), nullptr);
  EXPECT_EQ(kept_at(*plan, "/root/.claude.json"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/root/.claude/todos"), nullptr);
  EXPECT_TRUE(any_contains(plan->notes, "~/.claude.json was left out, so claude has no login or settings from there"));
  host.file("/root/.claude.json", 1000, 0600);
  host.folder("/root/.claude/todos", 1000);
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/root/.claude.json")->kind, MountKind::kCopy);
  EXPECT_TRUE(mount_at(*plan, "/root/.claude/todos")->idmap);
}

}  // namespace
}  // namespace belljar::plan
