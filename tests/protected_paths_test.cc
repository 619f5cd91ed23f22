// What programs of the host obey in a work folder: what a guest can do to it, judged from inside and from the host
// afterwards.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "support/belljar.h"
#include "support/git_repository.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// Every entry below `folder` with its content, or what a link leads to.
std::set<std::string> picture(const fs::path& folder) {
  std::set<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    std::string text = entry.path().lexically_relative(folder);
    if (entry.is_symlink()) {
      text += " -> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      text += ": " + read_text(entry.path());
    }
    out.insert(text);
  }
  return out;
}

class WorkspaceTest : public ::testing::Test {
 protected:
  WorkspaceTest() { fs::create_directory(work()); }
  [[nodiscard]] std::string work() const { return dir_ / "work"; }
  [[nodiscard]] std::string operator/(const std::string& path) const { return work() + "/" + path; }
  void file(const std::string& path, const std::string& text) const { write_file(*this / path, text); }
  void folder(const std::string& path) const { fs::create_directories(*this / path); }
  [[nodiscard]] bool is_there(const std::string& path) const { return fs::exists(fs::symlink_status(*this / path)); }

  [[nodiscard]] Command command(const std::string& script, std::vector<std::string> options = {}) const {
    options.insert(options.end(), {"--report", dir_ / "report.json"});
    Command out = sealed_script(work(), script, options);
    out.env["XDG_STATE_HOME"] = dir_ / "state";
    return out;
  }
  Output guest(const std::string& script, const std::vector<std::string>& options = {}) {
    Output output = run(command(script, options));
    report_ = nlohmann::json::parse(read_text(dir_ / "report.json"), nullptr, false);
    return output;
  }
  // What is said to have been put away, relative to the work folder. It must be where the report says.
  std::vector<std::string> quarantined() {
    std::vector<std::string> out;
    for (const auto& one : report_["after"]["quarantined"]) {
      EXPECT_EQ(one["reason"], "");
      EXPECT_TRUE(fs::exists(fs::symlink_status(std::string(one["moved_to"])))) << one;
      out.push_back(fs::path(std::string(one["path"])).lexically_relative(fs::canonical(work())));
    }
    return out;
  }
  std::vector<std::string> changes() {
    std::vector<std::string> out;
    for (const auto& one : report_["after"]["changes"]) {
      out.push_back(std::string(one["change"]) + " " +
                    fs::path(std::string(one["path"])).lexically_relative(fs::canonical(work())).string());
    }
    return out;
  }

  TempDir dir_;
  nlohmann::json report_;
};

// ---- what is there when the guest comes ----

// One way of changing what programs obey, and a check by /bin/sh that it worked.
struct Attempt {
  const char* name;
  const char* script;
  const char* worked;
};

constexpr Attempt kAttempts[] = {
    {"WriteAFile", "echo evil > .envrc", "grep -q evil .envrc"},
    {"ReplaceAFile", "echo evil > new; mv -f new .envrc", "grep -q evil .envrc"},
    {"RemoveAFile", "rm -f .envrc", "! test -e .envrc"},
    {"MoveAFileAway", "mv .envrc elsewhere", "! test -e .envrc"},
    {"OpenAFileAgain", "exec 3<.envrc; echo evil > /proc/self/fd/3", "grep -q evil .envrc"},
    {"ChangeTheModeOfAFile", "chmod 777 .envrc", "test \"$(stat -c %a .envrc)\" = 777"},
    {"WriteASecondName", "ln .envrc again && echo evil > again", "grep -q evil .envrc"},
    {"WriteThroughALink", "ln -s .envrc through; echo evil > through", "grep -q evil .envrc"},
    {"WriteAHook", "echo evil > .git/hooks/post-commit", "test -e .git/hooks/post-commit"},
    {"MoveTheRepositoryAway", "mv .git gone", "! test -e .git"},
    {"WriteANestedHook", "echo evil > a/b/.git/hooks/pre-commit", "test -e a/b/.git/hooks/pre-commit"},
    {"WriteAfterMovingAFolder", "mv a c; echo evil > c/b/.git/hooks/pre-commit",
     "test -e c/b/.git/hooks/pre-commit || test -e a/b/.git/hooks/pre-commit"},
    {"RemoveANestedRepository", "rm -rf a", "! test -e a/b/.git && ! test -e c/b/.git"},
    {"WriteASubmodulesPointer", "echo 'gitdir: ../evil' > sub/.git", "grep -q evil sub/.git"},
    {"WriteSettings", "echo evil > .claude/settings.json", "grep -q evil .claude/settings.json"},
    {"AddAHookToSettings", "mkdir -p .claude/hooks; echo evil > .claude/hooks/x", "test -e .claude/hooks/x"},
    {"RemoveSettings", "rm -rf .claude/settings.json", "! test -e .claude/settings.json"},
    {"ReplaceTheSettings", "mv .claude old; mkdir .claude; echo evil > .claude/x", "test -e .claude/x"},
    {"WriteNestedTasks", "echo evil > a/.vscode/tasks.json", "grep -q evil a/.vscode/tasks.json"},
    {"ReplaceALink", "rm -f .gemini; ln -s evil .gemini", "test \"$(readlink .gemini)\" = evil"},
    {"WriteMercurialsHooks", "echo evil > .hg/hgrc", "grep -q evil .hg/hgrc"},
    {"ReplaceAnotherRepository", "mv .hg old; mkdir .hg; echo evil > .hg/hgrc", "grep -q evil .hg/hgrc"},
    {"MakeAnotherRepository", "mkdir -p a/.jj/repo; echo evil > a/.jj/repo/config.toml", "test -e a/.jj"},
    {"WriteInARepositoryByItsShape", "echo evil > bare/config", "grep -q evil bare/config"},
};

class AttemptTest : public WorkspaceTest, public ::testing::WithParamInterface<Attempt> {
 protected:
  AttemptTest() {
    file(".envrc", "export A=1\n");
    for (const char* name : {".git", "a/b/.git"}) {
      folder(std::string(name) + "/hooks");
      file(std::string(name) + "/config", "[core]\n");
    }
    file("sub/.git", "gitdir: ../.git/modules/sub\n");
    file(".hg/hgrc", "[paths]\n");
    file(".claude/settings.json", "{}");
    file("a/.vscode/tasks.json", "{}");
    // Bubblewrap mounts nothing on a link: a folder with a protected one is refused there.
    if (refused() || !by_bubblewrap()) fs::create_symlink("nowhere", *this / ".gemini");
    for (const char* name : {"bare/objects", "bare/refs"}) folder(name);
    file("bare/HEAD", "ref: refs/heads/main\n");
    file("bare/config", "[core]\n");
  }
  [[nodiscard]] static bool refused() { return by_bubblewrap() && std::string_view(GetParam().name) == "ReplaceALink"; }
  // Judged by the host.
  [[nodiscard]] bool worked() const {
    return run({.argv = {"/bin/sh", "-c", GetParam().worked}, .cwd = work()}).code == 0;
  }
};

TEST_P(AttemptTest, ChangesNothingOnTheHost) {
  const Output output = guest(std::string(GetParam().script) + "\necho ran");
  EXPECT_FALSE(worked()) << output.err;
  EXPECT_EQ(output.out.ends_with("ran\n"), !refused()) << output.err;
}

// Without the boundary each works, so that one which cannot fail any more is noticed.
TEST_P(AttemptTest, WorksWithoutTheSeal) {
  ASSERT_FALSE(worked());
  (void)run({.argv = {"/bin/sh", "-c", GetParam().script}, .cwd = work()});
  EXPECT_TRUE(worked());
}

INSTANTIATE_TEST_SUITE_P(To, AttemptTest, ::testing::ValuesIn(kAttempts),
                         [](const auto& attempt) { return std::string(attempt.param.name); });

TEST_F(WorkspaceTest, GivesTheGuestACopyOfSettingsThatItCanWrite) {
  file(".claude/settings.json", "{}");
  file(".claude/agents/one.md", "one");
  file(".vscode/tasks.json", "{}");
  const auto before = picture(work());
  const Output output = guest(
      "cat .claude/settings.json && echo mine > .claude/settings.json && cat .claude/settings.json &&"
      "mkdir .claude/skills && echo new > .claude/skills/s.md && rm .claude/agents/one.md && ls -A .claude/agents &&"
      "mv .claude/skills .claude/again && rm -r .vscode/* && touch .vscode/x && ls -A .vscode");
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "{}mine\nx\n");
  EXPECT_EQ(picture(work()), before);
  EXPECT_THAT(changes(),
              UnorderedElementsAre("changed .claude/settings.json", "added .claude/again/", "added .claude/again/s.md",
                                   "removed .claude/agents/one.md", "removed .vscode/tasks.json", "added .vscode/x"));
  EXPECT_THAT(output.err, HasSubstr("changed in the session's own copies only, and gone: "));
  EXPECT_THAT(output.err, HasSubstr(" and 5 more"));
}

// What bubblewrap has no means for is read-only or refused, and never open.
TEST_F(WorkspaceTest, OverBubblewrapSettingsAreReadOnlyAndALinkIsRefused) {
  std::vector<std::string> options;
  if (!by_bubblewrap()) options = {"--mode", "bwrap"};
  file(".claude/settings.json", "{}");
  const auto before = picture(work());
  const Output output = guest(
      "cat .claude/settings.json; echo evil >.claude/settings.json; mv .claude x; touch .claude/y; rm -rf .claude; "
      "echo ran",
      options);
  EXPECT_EQ(output.out, "{}ran\n") << output.err;
  EXPECT_EQ(picture(work()), before);
  fs::create_symlink("nowhere", *this / ".gemini");
  const Output linked = guest("echo ran", options);
  EXPECT_EQ(linked.code, 125);
  EXPECT_EQ(linked.out, "");
  EXPECT_THAT(linked.err, HasSubstr("/.gemini': it is a symbolic link, which bubblewrap cannot keep from being "
                                    "replaced, refusing (add files.approve"));
}

TEST_F(WorkspaceTest, SaysNothingWhenThereIsNothingToSay) {
  file(".claude/settings.json", "{}");
  folder(".git");
  const Output output = guest("cat .claude/settings.json; echo code > code.cc");
  EXPECT_EQ(output.code, 0);
  EXPECT_EQ(output.err, "");
  EXPECT_EQ(report_["after"]["changes"].size() + report_["after"]["quarantined"].size(), 0U);
}

// Overlays upon overlays end at some depth (OVL_MAX_NESTING in fs/overlayfs); then there is none for a copy.
TEST_F(WorkspaceTest, SaysSoWhenTheKernelMakesNoCopy) {
  file(".claude/settings.json", "{}");
  const std::string script =
      "cd '" + dir_.path() +
      "'; mkdir s; mount -t tmpfs -o mode=777 none s; W=work; for i in 1 2; do "
      "mkdir s/u$i s/w$i s/m$i; test $(id -u) != 0 || chown 1234:1234 s/u$i; mount -t overlay none -o "
      "lowerdir=$W,upperdir=s/u$i,workdir=s/w$i s/m$i || exit 77; "
      "W=s/m$i; done; cd $W; exec setpriv --inh-caps=-all --ambient-caps=-all " +
      belljar_program() + " run --report '" + dir_ / "report.json" +
      "' -- sh -c 'cat .claude/settings.json; echo evil >.claude/settings.json || echo read-only'";
  std::vector<std::string> words{"unshare", "-m", "sh", "-c", script};
  if (::geteuid() != 0) words = {"unshare", "-c", "--keep-caps", "-m", "sh", "-c", script};
  if (::geteuid() == 0) (void)::chown(work().c_str(), 1234, 1234);
  Command command{.argv = words};
  command.env["XDG_STATE_HOME"] = dir_ / "state";
  const Output output = run(command);
  ASSERT_NE(output.code, 77) << output.err;
  EXPECT_EQ(output.out, "{}read-only\n") << output.err;
  EXPECT_THAT(read_text(dir_ / "report.json"), HasSubstr("/.claude' was read-only: this kernel makes no overlay"));
}

// ---- what is not there ----

TEST_F(WorkspaceTest, HasNoGhostsOfWhatIsNotThere) {
  EXPECT_EQ(guest("ls -A").out, "");
  EXPECT_THAT(picture(work()), IsEmpty());
}

TEST_F(WorkspaceTest, HasNoGhostsWhenBelljarIsKilled) {
  file(".claude/settings.json", "{}");
  const auto before = picture(work());
  const std::string marker = "86399." + std::to_string(::getpid());
  Process process(command("echo x > .claude/x; echo ready; exec sleep " + marker));
  ASSERT_EQ(process.read_line(), "ready");
  process.signal(SIGKILL);
  (void)process.wait();
  EXPECT_TRUE(eventually([&] { return processes_with("sleep " + marker).empty(); }));
  EXPECT_EQ(picture(work()), before);
}

TEST_F(WorkspaceTest, PutsAwayWhatTheGuestMadeAtAnyDepth) {
  folder("src/deep");
  const Output output = guest(
      "mkdir .git .vscode; echo evil > .git/config; echo evil > src/deep/.envrc; mkdir x; mv x src/.husky;"
      "ln -s /etc src/.claude; echo 'gitdir: /x' > f; ln f src/deep/.git; mkfifo .mcp.json; mkdir .hg; echo evil > "
      ".hg/hgrc; "
      "mkdir src/_darcs; echo evil > src/deep/.Rprofile; echo fine > src/code.cc;"
      "mkdir -p bare/objects bare/refs; echo 'ref: refs/heads/main' > bare/HEAD; mkdir .GIT; echo made");
  EXPECT_EQ(output.out, "made\n");
  EXPECT_THAT(quarantined(),
              UnorderedElementsAre(".git", ".vscode", "src/deep/.envrc", "src/.husky", "src/.claude", "src/deep/.git",
                                   ".mcp.json", "bare/HEAD", ".GIT", ".hg", "src/_darcs", "src/deep/.Rprofile"));
  EXPECT_THAT(picture(work()), UnorderedElementsAre("src", "src/deep", "src/code.cc: fine\n", "f: gitdir: /x\n", "bare",
                                                    "bare/objects", "bare/refs"));
  EXPECT_THAT(output.err, HasSubstr("put into quarantine, since programs would obey it: '"));
  EXPECT_THAT(output.err,
              HasSubstr(" and 11 more, to '" + fs::canonical(dir_ / "state").string() + "/belljar/quarantine/"));
}

TEST_F(WorkspaceTest, PutsAwayWhatTheGuestMadeInThePlaceOfTheHosts) {
  folder("a/b/.git/hooks");
  file("c/.envrc", "host's");
  (void)guest(
      "mv a elsewhere; mkdir -p a/b/.git/hooks; echo evil > a/b/.git/hooks/x; mv c d; mkdir c; echo evil > c/.envrc");
  EXPECT_THAT(quarantined(), UnorderedElementsAre("a/b/.git", "c/.envrc"));
  EXPECT_TRUE(is_there("elsewhere/b/.git/hooks"));
  EXPECT_EQ(read_text(*this / "d/.envrc"), "host's");
}

TEST_F(WorkspaceTest, PutsAwayWhatTheGuestMadeWhenBelljarIsKilled) {
  const std::string marker = "86398." + std::to_string(::getpid());
  Process process(command("mkdir -p a/.git; echo evil > .envrc; echo ready; exec sleep " + marker));
  ASSERT_EQ(process.read_line(), "ready");
  process.signal(SIGKILL);
  (void)process.wait();
  EXPECT_TRUE(eventually([&] { return !is_there("a/.git") && !is_there(".envrc"); }));
  EXPECT_TRUE(is_there("a"));
}

TEST_F(WorkspaceTest, IsNotHeldUpByWhatTheGuestShuts) {
  (void)guest("mkdir -p a/b/.git; chmod 0 a/b/.git; chmod 0 a/b; chmod 0 a");
  EXPECT_THAT(quarantined(), ElementsAre("a/b/.git"));
}

TEST_F(WorkspaceTest, HidesAQuarantineInTheWorkFolderFromLaterGuests) {
  file(".belljar-quarantine-0123456789abcdef/0001", "evil");
  const auto before = picture(work());
  EXPECT_EQ(guest("ls -A .belljar-quarantine-*; mv .belljar-quarantine-* x 2>/dev/null; ls").out, "");
  EXPECT_EQ(picture(work()), before);
}

TEST_F(WorkspaceTest, LeavesWhatAPersonApproved) {
  folder(".vscode");
  folder("build/a/.git");
  const Output output = guest(
      "echo mine > .vscode/tasks.json; echo x > build/a/.git/config; mkdir -p build/b/.git c/.git; echo y > .envrc",
      {"--approve", ".vscode", "--approve", "build/**", "--approve", "**/.envrc"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(output.err, HasSubstr("weaker than it could be: approve '.vscode'"));
  EXPECT_THAT(quarantined(), ElementsAre("c/.git"));
  EXPECT_THAT(picture(work()), Contains(".vscode/tasks.json: mine\n"));
  EXPECT_THAT(picture(work()), Contains("build/a/.git/config: x\n"));
  EXPECT_TRUE(is_there("build/b/.git"));
  EXPECT_TRUE(is_there(".envrc"));
}

TEST_F(WorkspaceTest, RefusesAnApprovalOfEverythingOrOfTheOutside) {
  for (const char* pattern : {"**", ".", "/etc", "../x", "~/x", "a**b"}) {
    EXPECT_EQ(guest("true", {"--approve", pattern}).code, 125) << pattern;
  }
}

// ---- git, by the host's own git ----

class GitTest : public WorkspaceTest {
 protected:
  GitTest() { repository(work()); }
  // `git status` and `git log` in the guest say what they say outside.
  void looks_as_on_the_host(const std::string& folder) {
    const std::string script = "git status --short --branch && git log --oneline && git diff --stat";
    Command inside = sealed_script(folder, script);
    inside.env["XDG_STATE_HOME"] = dir_ / "state";
    const Output sealed_output = run(inside);
    EXPECT_EQ(sealed_output.out, run({.argv = {"/bin/sh", "-c", script}, .cwd = folder}).out);
    EXPECT_EQ(sealed_output.code, 0) << sealed_output.err;
    EXPECT_THAT(sealed_output.out, HasSubstr("first"));
  }
};

TEST_F(GitTest, WorksInARepositoryAndAShallowAndASparseOne) {
  file("code.cc", "changed\n");
  looks_as_on_the_host(work());
  git(dir_.path(), {"clone", "-q", "--depth", "1", "file://" + work(), "shallow"});
  looks_as_on_the_host(dir_ / "shallow");
  git(dir_.path(), {"clone", "-q", work(), "sparse"});
  git(dir_ / "sparse", {"sparse-checkout", "set", "nothing"});
  looks_as_on_the_host(dir_ / "sparse");
}

TEST_F(GitTest, WorksInALinkedWorktreeAndLeavesItsSiblingsAlone) {
  git(work(), {"worktree", "add", "-q", dir_ / "one"});
  git(work(), {"worktree", "add", "-q", dir_ / "two"});
  looks_as_on_the_host(dir_ / "one");
  const auto before = picture(*this / ".git/worktrees/two");
  Command inside = sealed_script(dir_ / "one", "cd '" + work() +
                                                   "/.git' 2>/dev/null && echo evil >> config;"
                                                   "echo evil >> ../work/.git/worktrees/two/HEAD; true");
  inside.env["XDG_STATE_HOME"] = dir_ / "state";
  (void)run(inside);
  EXPECT_EQ(picture(*this / ".git/worktrees/two"), before);
  EXPECT_THAT(read_text(*this / ".git/config"), Not(HasSubstr("evil")));
  git(work(), {"worktree", "prune"});
  EXPECT_TRUE(is_there(".git/worktrees/one"));
}

TEST_F(GitTest, DoesNotFollowAWorktreeThatDoesNotPointBack) {
  repository(dir_ / "other");
  fs::create_directories(dir_ / "fake");
  write_file(dir_ / "fake/.git", "gitdir: " + dir_ / "other/.git" + "\n");
  Command inside = sealed_script(dir_ / "fake", "git log --oneline");
  inside.env["XDG_STATE_HOME"] = dir_ / "state";
  EXPECT_NE(run(inside).code, 0);
}

TEST_F(GitTest, WorksWithSubmodulesAndInOne) {
  repository(dir_ / "lib");
  git(work(), {"submodule", "--quiet", "add", dir_ / "lib", "sub"});
  git(work(), {"commit", "-q", "-m", "second"});
  looks_as_on_the_host(work());
  looks_as_on_the_host(work() + "/sub");
}

// By a link of the host's, the guest could write what git executes.
TEST_F(GitTest, KeepsWhatItsHooksLeadTo) {
  fs::remove_all(*this / ".git/hooks");
  fs::create_symlink("../shared", *this / ".git/hooks");
  (void)guest(
      "mkdir -p shared && printf '#!/bin/sh\\ntouch ../ran\\n' > shared/pre-commit && chmod +x shared/pre-commit;"
      "mkdir -p .git/hooks");
  EXPECT_THAT(quarantined(), ElementsAre("shared"));
  file("shared/pre-commit", "#!/bin/sh\n");
  const auto before = picture(*this / "shared");
  (void)guest(
      "echo evil >> shared/pre-commit; echo evil > .git/hooks/post-commit; mv shared gone; echo evil > shared/x");
  EXPECT_EQ(picture(*this / "shared"), before);
  EXPECT_TRUE(fs::is_symlink(*this / ".git/hooks"));
}

TEST_F(GitTest, KeepsAScriptThatAHookLeadsTo) {
  file("tools/check", "#!/bin/sh\n");
  fs::create_symlink("../../tools/check", *this / ".git/hooks/pre-commit");
  (void)guest("echo evil >> tools/check; mv tools t; mkdir tools; echo evil > tools/check");
  EXPECT_THAT(quarantined(), IsEmpty());
  EXPECT_EQ(read_text(*this / "tools/check"), "#!/bin/sh\n");
}

TEST_F(GitTest, LetsTheAgentCommitWhenToldTo) {
  const Output output =
      guest("git -c user.name=x -c user.email=x@y.test commit -q --allow-empty -m second && git log --oneline | wc -l",
            {"--git", "write"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "2\n");
  EXPECT_THAT(git(work(), {"log", "--oneline"}), HasSubstr("second"));
}

// Everything that would have git run something of the agent's, and then git of the host in every way a person uses it.
TEST_F(GitTest, RunsNothingOfTheAgentsAfterwards) {
  const std::string ran = dir_ / "ran";
  const Output output =
      guest("evil() { printf '#!/bin/sh\\ntouch " + ran +
                "\\n' > $1; chmod +x $1; };"
                "echo '[core]' > c; echo 'fsmonitor = touch " +
                ran +
                "' >> c; echo 'hooksPath = evil' >> c; evil bad;"
                "for h in pre-commit post-commit post-checkout post-index-change reference-transaction; do evil "
                ".git/hooks/$h; done;"
                "cat c >> .git/config; cp c .git/config.worktree; mv .git/config .git/old; cp c .git/config;"
                "mkdir -p other; cp -r .git/HEAD .git/refs .git/objects other; cp c other/config; echo ../other > "
                ".git/commondir;"
                "mkdir -p .git/rebase-merge .git/remotes; echo 'exec touch " +
                ran +
                "' > .git/rebase-merge/git-rebase-todo;"
                "echo 'URL: ext::touch " +
                ran +
                "' > .git/remotes/origin; mv .git/hooks .git/h; mkdir -p .git/hooks;"
                "evil .git/hooks/pre-commit; mkdir -p .git/modules/x; cp -r .git/HEAD .git/refs .git/objects c "
                ".git/modules/x; true",
            {"--git", "write"});
  EXPECT_EQ(output.code, 0) << output.err;
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"status"},
                                             {"log"},
                                             {"add", "."},
                                             {"-c", "user.name=a", "-c", "user.email=a@b.test", "commit", "-m", "x"},
                                             {"fetch"},
                                             {"rebase", "--continue"},
                                             {"checkout", "-b", "next"},
                                             {"diff"}}) {
    Command command{.argv = {"git"}, .cwd = work()};
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    (void)run(command);
  }
  (void)run({.argv = {"git", "status"}, .cwd = work() + "/other"});
  EXPECT_FALSE(fs::exists(ran)) << output.err;
  EXPECT_THAT(quarantined(), Contains(".git/commondir"));
  EXPECT_THAT(git(work(), {"log", "--oneline"}), HasSubstr("first"));
}

// ---- what people need ----

TEST_F(WorkspaceTest, LetsToolsDoWhatTheyDoInTheWorkFolder) {
  folder(".git");
  folder(".claude");
  const Output output = guest(
      "set -e; mkdir -p a/b c; echo 1 > a/b/f; mv a/b c/; ln c/b/f hard; echo 2 >> hard; cat c/b/f; ln -s c/b/f soft;"
      "cat soft; mv hard a/; flock a/hard true; rm -r c; ls -A a; mkfifo p; rm p; cp -r a d; rm -r d; truncate -s 1M "
      "big;"
      "rm big; touch -d 2001-01-01 a/hard; chmod 600 a/hard; rename=ok; echo $rename");
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "1\n2\n1\n2\nhard\nok\n");
}

TEST_F(WorkspaceTest, WorksForLinksThatLeadNowhere) {
  folder(".git/hooks");
  fs::create_symlink("../nowhere", *this / ".claude");
  fs::create_symlink("/nowhere", *this / ".envrc");
  fs::create_symlink(".envrc", *this / ".mcp.json");
  const Output output = guest("readlink .claude .envrc .mcp.json; ls -A");
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "../nowhere\n/nowhere\n.envrc\n.claude\n.envrc\n.git\n.mcp.json\n");
}

}  // namespace
}  // namespace belljar::testing
