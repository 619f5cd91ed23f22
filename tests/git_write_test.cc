// git in every kind of work folder, with git = "write" and what leads git elsewhere: judged by the host's git
// afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/belljar.h"
#include "support/git_repository.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr const char* kCommit =
    "echo more >>code.cc && git add code.cc && git -c user.name=x -c user.email=x@y.test commit -q -m second && "
    "git status --porcelain && git log --oneline | wc -l";

class GitWriteTest : public ::testing::Test {
 protected:
  GitWriteTest() { repository(main()); }
  [[nodiscard]] std::string main() const { return dir_ / "main"; }

  Output guest(const std::string& folder, const std::string& script, std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--report", dir_ / "report.json"});
    Command command = sealed_script(folder, script, options);
    command.env["XDG_STATE_HOME"] = dir_ / "state";
    command.env["HOME"] = dir_ / "home";
    Output output = run(command);
    report_ = nlohmann::json::parse(read_text(dir_ / "report.json"), nullptr, false);
    return output;
  }
  std::vector<std::string> quarantined() {
    std::vector<std::string> out;
    for (const auto& one : report_["after"]["quarantined"]) {
      out.push_back(fs::path(std::string(one["path"])).lexically_relative(fs::canonical(dir_.path())));
    }
    return out;
  }
  TempDir dir_;
  nlohmann::json report_;
};

TEST_F(GitWriteTest, CommitsInALinkedWorktreeAndLeavesTheOthersAlone) {
  git(main(), {"worktree", "add", "-q", dir_ / "one"});
  git(main(), {"worktree", "add", "-q", dir_ / "two"});
  const std::string before = must_run(
      {.argv = {"sh", "-c", "cd main/.git; cat HEAD index config worktrees/two/*; ls -A"}, .cwd = dir_.path()});
  const Output output = guest(dir_ / "one", kCommit, {"--git", "write"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "2\n");
  EXPECT_THAT(git(dir_ / "one", {"log", "--oneline"}), HasSubstr("second"));
  EXPECT_THAT(git(main(), {"log", "--oneline", "one"}), HasSubstr("second"));
  (void)guest(dir_ / "one",
              "cd ../main/.git; for f in HEAD index config packed-refs hooks/pre-commit config.worktree commondir "
              "worktrees/two/HEAD worktrees/two/commondir worktrees/one/commondir worktrees/one/gitdir "
              "objects/info/alternates; do echo evil >>$f; done; mv worktrees/two gone; mv hooks gone; mv config gone; "
              "git gc --prune=now; git worktree prune --expire=now; rm -rf worktrees/two",
              {"--git", "write"});
  EXPECT_EQ(must_run({.argv = {"sh", "-c", "cd main/.git; cat HEAD index config worktrees/two/*; ls -A"},
                      .cwd = dir_.path()}),
            before);
  EXPECT_EQ(git(dir_ / "two", {"status", "--porcelain"}), "");
  EXPECT_THAT(git(dir_ / "one", {"log", "--oneline"}), HasSubstr("second"));
  EXPECT_FALSE(fs::exists(main() + "/.git/objects/info/alternates"));
}

TEST_F(GitWriteTest, PutsAwayWhatAWorktreesOwnFolderWouldObey) {
  git(main(), {"worktree", "add", "-q", dir_ / "one"});
  const std::string ran = dir_ / "ran";
  const Output output = guest(dir_ / "one",
                              "cd $(git rev-parse --git-dir); printf '[core]\\nfsmonitor = touch " + ran +
                                  "\\n' >config.worktree; mkdir modules; mkdir -p rebase-merge; echo 'exec touch " +
                                  ran + "' >rebase-merge/git-rebase-todo; mv commondir x; echo made",
                              {"--git", "write"});
  EXPECT_EQ(output.out, "made\n") << output.err;
  EXPECT_THAT(quarantined(), Contains("main/.git/worktrees/one/config.worktree"));
  EXPECT_THAT(quarantined(), Contains("main/.git/worktrees/one/rebase-merge"));
  (void)run({.argv = {"git", "-c", "extensions.worktreeConfig=true", "status"}, .cwd = dir_ / "one"});
  (void)run({.argv = {"git", "rebase", "--continue"}, .cwd = dir_ / "one"});
  EXPECT_FALSE(fs::exists(ran));
  EXPECT_EQ(git(dir_ / "one", {"status", "--porcelain"}), "");
}

// git executes a strategy's program, and finds one below the work folder by a name with a slash in it.
TEST_F(GitWriteTest, WhatWaitsForGitsContinueIsNotTheAgents) {
  const std::string ran = dir_ / "ran";
  const Output output =
      guest(main(),
            "git branch side; git -c user.name=x -c user.email=x@y.test commit -q --allow-empty -m two; "
            "mkdir git-merge-x; printf '#!/bin/sh\ntouch " +
                ran +
                "\nexit 1\n' >evil; chmod +x evil; cd .git; mkdir sequencer rebase-apply; "
                "git rev-parse HEAD >sequencer/head; printf 'pick %s a\npick %s b\n' $(git rev-parse HEAD "
                "side) >sequencer/todo; printf '[options]\n\tstrategy = x/../evil\n' >sequencer/opts",
            {"--git", "write"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(quarantined(), IsSupersetOf({"main/.git/sequencer", "main/.git/rebase-apply"}));
  (void)run({.argv = {"git", "cherry-pick", "--continue"}, .cwd = main()});
  EXPECT_FALSE(fs::exists(ran));
}

// Git appends to its logs and writes its messages through a link.
TEST_F(GitWriteTest, PutsAwayLinksThatGitOfTheHostWouldWriteThrough) {
  write_file(dir_ / "victim", "as it was\n");
  git(main(), {"worktree", "add", "-q", dir_ / "one"});
  const std::string victim = dir_ / "victim";
  (void)guest(main(),
              "for f in logs/HEAD logs/refs/heads/main COMMIT_EDITMSG MERGE_MSG ORIG_HEAD; do rm -f .git/$f; ln -s " +
                  victim + " .git/$f; done; mkfifo .git/FETCH_HEAD; ln -s " + victim + " .git/refs/heads/evil",
              {"--git", "write"});
  for (const char* name : {"logs/HEAD", "logs/refs/heads/main", "COMMIT_EDITMSG", "FETCH_HEAD", "refs/heads/evil"}) {
    EXPECT_THAT(quarantined(), Contains("main/.git/" + std::string(name)));
  }
  (void)guest(
      dir_ / "one",
      "cd $(git rev-parse --git-common-dir); for f in logs/refs/heads/one refs/heads/evil worktrees/one/logs/HEAD "
      "worktrees/one/COMMIT_EDITMSG; do rm -f $f; ln -s " +
          victim + " $f; done; true",
      {"--git", "write"});
  EXPECT_THAT(quarantined(), Contains("main/.git/logs/refs/heads/one"));
  EXPECT_THAT(quarantined(), Contains("main/.git/worktrees/one/COMMIT_EDITMSG"));
  for (const std::string& folder : {main(), dir_ / "one"}) {
    git(folder, {"commit", "-q", "--allow-empty", "-m", "by the host"});
  }
  EXPECT_EQ(read_text(victim), "as it was\n");
  // Without the look at the end it would be written to.
  fs::remove(main() + "/.git/COMMIT_EDITMSG");
  fs::create_symlink(victim, main() + "/.git/COMMIT_EDITMSG");
  git(main(), {"commit", "-q", "--allow-empty", "-m", "by the host"});
  EXPECT_NE(read_text(victim), "as it was\n");
}

TEST_F(GitWriteTest, CommitsInASubmodule) {
  repository(dir_ / "lib");
  git(main(), {"submodule", "--quiet", "add", dir_ / "lib", "sub"});
  git(main(), {"commit", "-q", "-m", "with a submodule"});
  const Output output = guest(main() + "/sub", kCommit, {"--git", "write"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "2\n");
  EXPECT_THAT(git(main() + "/sub", {"log", "--oneline"}), HasSubstr("second"));
  const std::string config = read_text(main() + "/.git/modules/sub/config");
  (void)guest(main() + "/sub",
              "cd ../.git/modules/sub; echo evil >>config; echo evil >hooks/pre-commit; mv config x; "
              "echo ../../.. >commondir; echo evil >../../config; echo evil >../../hooks/pre-commit",
              {"--git", "write"});
  EXPECT_EQ(read_text(main() + "/.git/modules/sub/config"), config);
  EXPECT_FALSE(fs::exists(main() + "/.git/modules/sub/hooks/pre-commit"));
  EXPECT_FALSE(fs::exists(main() + "/.git/modules/sub/commondir"));
  EXPECT_THAT(read_text(main() + "/.git/config"), Not(HasSubstr("evil")));
  EXPECT_EQ(git(main() + "/sub", {"status", "--porcelain"}), "");
}

TEST_F(GitWriteTest, FindsObjectsOfAnotherRepositoryOnlyWhereTheHostSaysSo) {
  git(dir_.path(), {"clone", "-q", "--shared", "main", "shared"});
  const std::string script = "git status --short --branch && git log --oneline && git diff --stat HEAD";
  const Output output = guest(dir_ / "shared", script);
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, must_run({.argv = {"sh", "-c", script}, .cwd = dir_ / "shared"}));
  // A guest that may write the repository cannot have the next one given another's objects.
  repository(dir_ / "private");
  const std::string alternates = read_text(dir_ / "shared/.git/objects/info/alternates");
  (void)guest(dir_ / "shared",
              "echo " + dir_ / "private/.git/objects" + " >>.git/objects/info/alternates; mv .git/objects x",
              {"--git", "write"});
  EXPECT_EQ(read_text(dir_ / "shared/.git/objects/info/alternates"), alternates);
  (void)guest(main(), "echo " + dir_ / "private/.git/objects" + " >.git/objects/info/alternates; echo made",
              {"--git", "write"});
  EXPECT_FALSE(fs::exists(main() + "/.git/objects/info/alternates"));
}

TEST_F(GitWriteTest, WorksInAPartialCloneAndWithPointersOfLargeFiles) {
  git(main(), {"config", "uploadpack.allowFilter", "true"});
  git(dir_.path(), {"clone", "-q", "--filter=blob:none", "file://" + main(), "partial"});
  write_file(dir_ / "partial/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  write_file(dir_ / "partial/large.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  git(dir_ / "partial", {"add", "."});
  git(dir_ / "partial", {"commit", "-q", "-m", "pointers"});
  const std::string script = "git status --short --branch && git log --oneline && cat large.bin";
  const Output output = guest(dir_ / "partial", script);
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, must_run({.argv = {"sh", "-c", script}, .cwd = dir_ / "partial"}));
}

// Hooks that are kept with the code, and a config of the repository that the person's includes.
TEST_F(GitWriteTest, KeepsWhatTheHostsConfigLeadsTo) {
  const std::string ran = dir_ / "ran";
  git(main(), {"config", "core.hooksPath", "tools/hooks"});
  git(main(), {"config", "include.path", "../shared.config"});
  write_file(dir_ / "home/.gitconfig", "[includeIf \"gitdir:" + main() + "/\"]\n\tpath = " + main() + "/mine.config\n");
  write_file(main() + "/tools/hooks/pre-commit", "#!/bin/sh\n");
  fs::permissions(main() + "/tools/hooks/pre-commit", fs::perms::owner_all);
  write_file(main() + "/shared.config", "[alias]\n\tx = status\n");
  const std::string evil = "#!/bin/sh\\ntouch " + ran + "\\n";
  const Output output = guest(
      main(), "printf '" + evil + "' >tools/hooks/pre-commit; printf '" + evil +
                  "' >tools/hooks/post-commit; chmod +x tools/hooks/*; mv tools t; mkdir -p tools/hooks; printf '" +
                  evil +
                  "' >tools/hooks/pre-commit; chmod +x tools/hooks/pre-commit; "
                  "echo evil >>shared.config; mv shared.config s; printf '[core]\\nfsmonitor = touch " +
                  ran + "\\n' | tee shared.config >mine.config; echo made");
  EXPECT_THAT(output.out, HasSubstr("made"));
  Command commit{
      .argv = {"git", "-c", "user.name=a", "-c", "user.email=a@b.test", "commit", "--allow-empty", "-m", "x"},
      .cwd = main()};
  commit.env["HOME"] = dir_ / "home";
  (void)run(commit);
  EXPECT_FALSE(fs::exists(ran)) << output.err;
  EXPECT_EQ(read_text(main() + "/tools/hooks/pre-commit"), "#!/bin/sh\n");
  EXPECT_THAT(quarantined(), Contains("main/mine.config"));
}

// A folder that the policy lets the guest write is looked through as the work folder is.
TEST_F(GitWriteTest, GuardsOtherFoldersThatTheGuestMayWrite) {
  repository(dir_ / "other");
  write_file(dir_ / "other/.vscode/tasks.json", "{}");
  const Output output = guest(main(),
                              "cd ../other; echo code >made; echo evil >.git/hooks/pre-commit; echo evil >.envrc; "
                              "mkdir -p deep/.claude; echo evil >.vscode/tasks.json; cat .vscode/tasks.json; mv .git x",
                              {"--write", dir_ / "other"});
  // Its own copy, or read-only where bubblewrap makes none.
  EXPECT_EQ(output.out, by_bubblewrap() ? "{}" : "evil\n") << output.err;
  EXPECT_EQ(read_text(dir_ / "other/made"), "code\n");
  EXPECT_FALSE(fs::exists(dir_ / "other/.git/hooks/pre-commit"));
  EXPECT_EQ(read_text(dir_ / "other/.vscode/tasks.json"), "{}");
  EXPECT_THAT(quarantined(), ::testing::UnorderedElementsAre("other/.envrc", "other/deep/.claude"));
}

TEST_F(GitWriteTest, HidesLoginsInTheFoldersOfToolchains) {
  write_file(dir_ / "home/.nvm/versions/node/v20/etc/npmrc", "//registry/:_authToken=secret\n");
  write_file(dir_ / "home/.local/share/pipx/venvs/x/pip.conf", "index-url = https://me:secret@host\n");
  write_file(dir_ / "home/.rustup/credentials.toml", "token = \"secret\"\n");
  write_file(dir_ / "home/.rustup/settings.toml", "version = \"12\"\n");
  const Output output = guest(main(),
                              "cat ~/.nvm/versions/node/v20/etc/npmrc ~/.local/share/pipx/venvs/x/pip.conf "
                              "~/.rustup/credentials.toml; cat ~/.rustup/settings.toml");
  EXPECT_EQ(output.out, "version = \"12\"\n") << output.err;
}

}  // namespace
}  // namespace belljar::testing
