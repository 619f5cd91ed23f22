#include "session/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/temp_tree.h"
#include "plan/make_plan.h"

namespace belljar::session {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = plan::GitFact::Kind;

// A home, a work folder in it, and what a person's shell would say.
struct Person {
  base::TempTree tree;
  Launcher launcher;
  policy::Policy policy;
  plan::Request request{.command = {"sh"}};

  Person() {
    tree.folder("home/work");
    launcher.environment = {{"HOME", tree.at("home")}, {"PATH", "/usr/bin:/bin"}};
    launcher.folder = tree.at("home/work");
  }
  base::Result<plan::Facts> facts() const { return gather_facts(policy, request, launcher); }
  base::Result<plan::Plan> plan() const {
    BELLJAR_ASSIGN(const plan::Facts found, facts());
    return plan::make_plan(policy, found, request);
  }
};

const plan::Mount* mount_at(const plan::Plan& plan, const std::string& target) {
  const auto found = std::ranges::find(plan.mounts, target, &plan::Mount::target);
  return found == plan.mounts.end() ? nullptr : &*found;
}

TEST(GatherFacts, OfThisProcessNamesWhoAndWhere) {
  const auto launcher = current_launcher();
  ASSERT_TRUE(launcher) << launcher.error().message();
  const auto facts = gather_facts({}, {.command = {"sh"}}, *launcher);
  ASSERT_TRUE(facts) << facts.error().message();
  EXPECT_EQ(facts->uid, ::geteuid());
  EXPECT_EQ(facts->root, ::geteuid() == 0);
  EXPECT_EQ(facts->launcher, ::getpid());
  EXPECT_EQ(facts->root_entries.at("/usr").kind, plan::RootEntry::Kind::kFolder);
  EXPECT_THAT(facts->devices, Contains("null"));
  EXPECT_THAT(facts->etc_secrets, Contains("/etc/shadow"));
  EXPECT_THAT(facts->etc_secrets, Not(Contains("/etc/master.passwd")));
  EXPECT_GT(facts->hard_open_files, 0U);
  EXPECT_GT(facts->hard_processes, 0U);
  EXPECT_FALSE(facts->passwd.empty());
}

TEST(GatherFacts, MakeAPlanWithTheAgentWherePeopleHaveIt) {
  Person person;
  const base::TempTree& tree = person.tree;
  tree.file("home/.local/share/claude/versions/2",
            "\x7f"
            "ELF",
            true);
  tree.link("home/.local/bin/claude", "../share/claude/versions/2");
  tree.file("home/.ssh/id", "secret");
  tree.folder("home/.claude");
  person.launcher.environment["PATH"] = tree.at("home/.local/bin") + ":/usr/bin";
  person.policy.agent.name = "claude";
  person.policy.agent.commands = {"claude"};
  person.policy.agent.config_dirs = {"~/.claude"};
  person.request.command.clear();
  const auto plan = person.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->program, tree.at("home/.local/bin/claude"));
  EXPECT_FALSE(mount_at(*plan, tree.at("home/.local/bin"))->writable);  // with its link
  EXPECT_EQ(mount_at(*plan, tree.at("home/.local/share/claude/versions/2"))->kind, plan::MountKind::kBind);
  EXPECT_TRUE(mount_at(*plan, tree.at("home/.claude"))->writable);
  EXPECT_EQ(mount_at(*plan, tree.at("home"))->kind, plan::MountKind::kScratch);
  EXPECT_EQ(mount_at(*plan, tree.at("home/.ssh")), nullptr);
}

TEST(GatherFacts, WorkFolderIsRealAndOtherPathsAreFollowed) {
  Person person;
  person.tree.link("shortcut", "home/work");
  person.launcher.folder = person.tree.at("shortcut");
  person.tree.link("home/data", "../elsewhere");
  person.tree.folder("elsewhere");
  person.policy.files.read = {"~/data"};
  const auto facts = person.facts();
  ASSERT_TRUE(facts) << facts.error().message();
  EXPECT_EQ(facts->work_folder, person.tree.at("home/work"));
  EXPECT_EQ(facts->paths.at(person.tree.at("home/data")).real, person.tree.at("elsewhere"));
  person.launcher.folder = person.tree.at("gone");
  EXPECT_THAT(person.facts().error().message(), HasSubstr("No such file or directory"));
}

TEST(GatherFacts, HomeComesFromPasswdWhenTheEnvironmentIsSilent) {
  Person person;
  person.launcher.environment["HOME"] = "relative";
  const auto facts = person.facts();
  ASSERT_TRUE(facts);
  EXPECT_NE(facts->home, "relative");
  if (::geteuid() == 0) {
    EXPECT_EQ(facts->home, "/root");
  }
}

TEST(GatherFacts, KnowsBelljarsOwnFoldersInBothPlaces) {
  Person person;
  person.launcher.environment["XDG_STATE_HOME"] = "/data/state";
  person.launcher.environment["XDG_CONFIG_HOME"] = "not absolute";
  const auto facts = person.facts();
  ASSERT_TRUE(facts);
  EXPECT_THAT(facts->own_folders, Contains("/data/state/belljar"));
  EXPECT_THAT(facts->own_folders, Contains(person.tree.at("home/.local/state/belljar")));
  EXPECT_THAT(facts->own_folders, Contains(person.tree.at("home/.config/belljar")));
  EXPECT_THAT(facts->own_folders, Contains("/run/user/" + std::to_string(::geteuid()) + "/belljar"));
}

// A repository and a linked worktree of it, as `git worktree add` leaves them.
struct Worktree {
  base::TempTree tree;
  std::string work = tree.folder("w");

  Worktree() {
    tree.file("main/.git/HEAD", "ref: refs/heads/main\n");
    tree.folder("main/.git/objects");
    tree.file("main/.git/worktrees/w/commondir", "../..\n");
    tree.file("main/.git/worktrees/w/gitdir", tree.at("w/.git") + "\n");
    tree.file("w/.git", "gitdir: " + tree.at("main/.git/worktrees/w") + "\n");
  }
  [[nodiscard]] plan::GitFact look() const {
    Walker walker(false);
    return look_at_git(work, walker);
  }
};

TEST(LookAtGit, AcceptsAWorktreeThatPointsBack) {
  const Worktree worktree;
  EXPECT_EQ(worktree.look().kind, Kind::kWorktree) << worktree.look().reason;
  EXPECT_EQ(worktree.look().common.real, worktree.tree.at("main/.git"));
}

TEST(LookAtGit, AcceptsRelativePointers) {
  const Worktree worktree;  // worktree.useRelativePaths of git 2.48
  worktree.tree.file("w/.git", "gitdir: ../main/.git/worktrees/w\n");
  worktree.tree.file("main/.git/worktrees/w/gitdir", "../../../../w/.git\n");
  EXPECT_EQ(worktree.look().kind, Kind::kWorktree) << worktree.look().reason;
}

TEST(LookAtGit, RefusesAWorktreeThatDoesNotPointBack) {
  const Worktree worktree;
  worktree.tree.file("other/.git", "x");
  worktree.tree.file("main/.git/worktrees/w/gitdir", worktree.tree.at("other/.git") + "\n");
  EXPECT_EQ(worktree.look().kind, Kind::kUnverified);
  EXPECT_THAT(worktree.look().reason, HasSubstr("it does not point back here"));
  std::filesystem::remove(worktree.tree.at("main/.git/worktrees/w/gitdir"));
  EXPECT_THAT(worktree.look().reason, HasSubstr("it does not point back here"));
  worktree.tree.link("main/.git/worktrees/w/gitdir", worktree.tree.file("back", worktree.tree.at("w/.git")));
  EXPECT_THAT(worktree.look().reason, HasSubstr("it does not point back here")) << "the pointer is a link";
}

TEST(LookAtGit, RefusesAnythingButAWorktreesFolder) {
  const Worktree worktree;
  const base::TempTree& tree = worktree.tree;
  tree.file("w/.git", "gitdir: " + tree.folder("home/.ssh") + "\n");
  EXPECT_THAT(worktree.look().reason, HasSubstr("it is not a worktree's"));
  tree.file("w/.git", "gitdir: /nowhere\n");
  EXPECT_THAT(worktree.look().reason, HasSubstr("it does not exist"));
  for (const std::string& text : {std::string(), std::string("gitdir: "), std::string("gitdir: \n"),
                                  std::string("gitdir: a\0b", 11), std::string("nonsense")}) {
    tree.file("w/.git", text);
    EXPECT_EQ(worktree.look().kind, Kind::kUnverified);
  }
}

TEST(LookAtGit, RefusesARepositoryThatTheGuestCouldHaveMade) {
  const Worktree worktree;
  const base::TempTree& tree = worktree.tree;
  tree.file("w/fake/HEAD", "x");
  tree.folder("w/fake/objects");
  tree.file("w/fake/worktrees/w/commondir", "../..\n");
  tree.file("w/fake/worktrees/w/gitdir", tree.at("w/.git") + "\n");
  tree.file("w/.git", "gitdir: fake/worktrees/w\n");
  EXPECT_THAT(worktree.look().reason, HasSubstr("it lies in the work folder itself"));
  // Through a link the folder is elsewhere, and so is what counts.
  tree.file("w/.git", "gitdir: " + tree.at("main/.git/worktrees/w") + "\n");
  tree.file("main/.git/worktrees/w/commondir", tree.folder("home/.ssh") + "\n");
  EXPECT_THAT(worktree.look().reason, HasSubstr("it is not inside a repository"));
}

TEST(LookAtGit, TellsFolderLinkAndNone) {
  const base::TempTree tree;
  Walker walker(false);
  EXPECT_EQ(look_at_git(tree.folder("none"), walker).kind, Kind::kNone);
  tree.folder("a/.git/hooks");
  tree.file("a/.git/config", "");
  const plan::GitFact folder = look_at_git(tree.at("a"), walker);
  EXPECT_EQ(folder.kind, Kind::kFolder);
  EXPECT_TRUE(folder.has_hooks);
  EXPECT_TRUE(folder.has_config);
  EXPECT_FALSE(folder.has_links);
  tree.link("b/.git", "../a/.git");
  EXPECT_EQ(look_at_git(tree.at("b"), walker).kind, Kind::kLink);
  EXPECT_EQ(look_at_git(tree.at("b"), walker).common.real, tree.at("a/.git"));
  tree.folder("c/.git");
  tree.link("c/.git/hooks", "../shared");
  const plan::GitFact linked = look_at_git(tree.at("c"), walker);
  EXPECT_FALSE(linked.has_hooks);
  EXPECT_TRUE(linked.has_links);
}

}  // namespace
}  // namespace belljar::session
