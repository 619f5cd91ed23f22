// What programs of the host obey by way of a path: what a guest does to the folders and links on that way, and what git
// of the host runs afterwards. Each way is tried without a boundary first: there it has to work.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "obeyed_ways.h"
#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class ObeyedElsewhereTest : public ::testing::Test {
 protected:
  static void make(const TempDir& world, const std::string& script) {
    fs::create_directories(world / "work");
    fs::create_directories(world / "home");
    (void)must_run(plain(world, "set -e\n" + script));
  }
  static Command plain(const TempDir& world, const std::string& script) {
    return {.argv = {"sh", "-c", kWords + script},
            .env = {{"HOME", world / "home"}, {"GIT_CONFIG_NOSYSTEM", "1"}},
            .cwd = world / "work"};
  }
  static Command guest(const TempDir& world, const std::string& script, std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--report", world / "report.json"});
    Command out = sealed_script(world / "work", kWords + script, options);
    out.env["HOME"] = world / "home";
    out.env["XDG_STATE_HOME"] = world / "state";
    return out;
  }
};

class WayTest : public ObeyedElsewhereTest, public ::testing::WithParamInterface<Way> {};

TEST_P(WayTest, LeadsNowhere) {
  const Way& way = GetParam();
  const TempDir open;
  make(open, way.host);
  (void)run(plain(open, way.guest));
  EXPECT_THAT(run(plain(open, way.after)).out, HasSubstr("EVIL")) << "without a boundary it is no attack";
  const TempDir closed;
  make(closed, way.host);
  const Output output = run(guest(closed, way.guest + std::string("\ntrue"), way.options));
  EXPECT_EQ(output.code, 0) << output.err;
  const Output after = run(plain(closed, way.after));
  EXPECT_THAT(after.out + after.err, Not(HasSubstr("EVIL"))) << output.err << read_text(closed / "report.json");
}

INSTANTIATE_TEST_SUITE_P(All, WayTest, ::testing::ValuesIn(kWays),
                         [](const auto& info) { return std::string(info.param.name); });

// Belljar cannot read it now; git can, later.
TEST_F(ObeyedElsewhereTest, NothingIsLaunchedWhereAConfigCannotBeRead) {
  const TempDir world;
  make(world, "git init -q .; touch config; git config include.path ../config");
  (void)std::signal(SIGIO, SIG_IGN);
  for (const char* name : {".git/config", "config"}) {
    const int file = ::open((world / "work/" + name).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(::fcntl(file, F_SETLEASE, F_WRLCK), 0) << name;
    const Output output = run(guest(world, "touch ran"));
    ::close(file);
    EXPECT_EQ(output.code, 125);
    EXPECT_THAT(output.err, HasSubstr(std::string(name) + "': a process keeps others from it by a lease"));
    EXPECT_FALSE(fs::exists(world / "work/ran"));
  }
  EXPECT_EQ(run(guest(world, "true")).code, 0);
}

// ---- what an agent can leave so that the next launch is refused: its remedy has to be one ----

TEST_F(ObeyedElsewhereTest, ShutFoldersAreNamedWhereTheyAreTooMany) {
  if (::geteuid() == 0) return;  // for whom none is shut
  const TempDir world;
  make(world, "true");
  (void)run(guest(world, "for i in $(seq 2001); do mkdir d$i; done; chmod 0 d*"));
  EXPECT_THAT(run(guest(world, "true")).err, HasSubstr("find . -type d ! -perm -u+rx"));
  (void)run(plain(world, "find . -type d ! -perm -u+rx -exec chmod u+rwx {} +"));
  EXPECT_EQ(run(guest(world, "true")).code, 0);
}

TEST_F(ObeyedElsewhereTest, AShutFolderThatIsTooDeepIsNamed) {
  if (::geteuid() == 0) return;
  const TempDir world;
  make(world, "true");
  const std::string deep =
      "python3 -c \"\nimport os\nfor i in range(20):\n os.mkdir('d' * 250)\n os.chdir('d' * 250)\n";
  (void)run(guest(world, deep + "os.chmod('.', 0)\""));
  const Output refused = run(guest(world, "true"));
  EXPECT_EQ(refused.code, 125);
  EXPECT_THAT(refused.err, HasSubstr("lies too deep to be hidden"));
  (void)run(plain(world, "chmod -R u+rwX ddd*"));
  EXPECT_EQ(run(guest(world, "true")).code, 0);
}

TEST_F(ObeyedElsewhereTest, WhatIsPutAwayInDeepFoldersIsDropped) {
  const TempDir world;
  make(world, "true");
  (void)run(guest(world,
                  "for i in $(seq 510); do mkdir d$i; : >d$i/.envrc; done; python3 -c \"\nimport os\nfor i in "
                  "range(20):\n os.mkdir('d' * 250)\n os.chdir('d' * 250)\nfor i in range(20):\n os.mkdir('x%d' % i)\n "
                  "open('x%d/.envrc' % i, 'w').write('evil')\""));
  Command drop = guest(world, "true");
  drop.argv = {belljar_program(), "quarantine", "drop", "--all"};
  EXPECT_EQ(run(drop).code, 0);
  EXPECT_EQ(must_run(plain(world, "find . -name '.belljar-quarantine-*' -o -name .envrc")), "");
}

// ---- what is the agent's to write, and what is nobody's to move ----

TEST_F(ObeyedElsewhereTest, LinksOfSettingsLeaveTheProjectsOwnToTheAgent) {
  const TempDir world;
  make(world,
       "mkdir -p .claude/skills .claude/worktrees/x node_modules/@o/p/skill src; echo >AGENTS.md; echo >.env; "
       "ln -s ../AGENTS.md .claude/CLAUDE.md; ln -s ../../node_modules/@o/p/skill .claude/skills/s; "
       "ln -s \"$PWD/node_modules\" .claude/worktrees/x/node_modules; ln -s ../../../.env .claude/worktrees/x/.env; "
       "ln -s .. .claude/project");
  const Output output = run(guest(world, "echo x >AGENTS.md && echo x >.env && rm -r node_modules && rmdir src"));
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(read_text(world / "work/AGENTS.md"), "x\n");
  EXPECT_FALSE(fs::exists(world / "work/node_modules"));
}

TEST_F(ObeyedElsewhereTest, WhatTheHomeLeadsToIsTheAgentsWhereItIsApproved) {
  const TempDir world;
  make(world,
       "echo >rc; echo >other; ln -s \"$PWD/rc\" ~/.bashrc; mkdir -p ~/.claude/skills; ln -s \"$PWD\" "
       "~/.claude/skills/s");
  const Output closed = run(guest(world, "echo more >other && echo more >rc"));
  EXPECT_NE(closed.code, 0);
  EXPECT_THAT(closed.err, HasSubstr("/.claude/skills/s' leads to the work folder"));
  const Output approved = run(guest(world, "echo more >rc", {"--approve", "rc"}));
  EXPECT_EQ(approved.code, 0) << approved.err;
  EXPECT_EQ(read_text(world / "home/.bashrc"), "more\n");
}

TEST_F(ObeyedElsewhereTest, HooksInTheWorkFolderItselfAreAWeakening) {
  const TempDir world;
  make(world, "git init -q .; git config core.hooksPath .");
  EXPECT_THAT(run(guest(world, "true")).err, HasSubstr("/.git/config' leads to the work folder"));
}

TEST_F(ObeyedElsewhereTest, WhatIsToComeForTheHomeIsAWeakening) {
  const TempDir world;
  make(world, "ln -s \"$PWD/aliases\" ~/.bash_aliases");
  EXPECT_THAT(run(guest(world, "true")).err, HasSubstr("/work/aliases', where nothing is: what the agent makes there"));
}

TEST_F(ObeyedElsewhereTest, LinksThatWereInTheHistoryStay) {
  const TempDir world;
  make(world, "mkdir -p ~/.codex/log; echo >~/real; ln -s ~/real ~/.codex/log/mine");
  const Output output =
      run(guest(world, "echo x >~/.codex/log/new; ln -s ~/real ~/.codex/log/theirs", {"--agent", "codex"}));
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_TRUE(fs::is_symlink(world / "home/.codex/log/mine"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(world / "home/.codex/log/theirs")));
  EXPECT_EQ(read_text(world / "home/.codex/log/new"), "x\n");
}

TEST_F(ObeyedElsewhereTest, PackagesThatShareTheirFilesAreLeftAlone) {
  const TempDir world;
  make(world,
       "mkdir -p store .claude/skills packages/x/node_modules node_modules ~/.claude/skills dev/node_modules; "
       "for i in $(seq 2100); do echo >store/$i; done; cp -rl store packages/x/node_modules/p; "
       "cp -rl store node_modules/p; cp -rl store dev/node_modules/p; mv dev ../dev; rm -rf store; "
       "ln -s ../../packages/x .claude/skills/x; ln -s \"$PWD/../dev\" ~/.claude/skills/dev");
  const Output output = run(guest(world, "echo more >node_modules/p/1"));
  EXPECT_EQ(output.code, 0) << output.err;
}

// In a folder where everybody may make entries, others would say what the agent cannot write.
TEST_F(ObeyedElsewhereTest, NobodyElsesSettingsAboveCount) {
  const TempDir world;
  make(world, "echo >rc; ln -s work/rc ../.mcp.json; chmod 1777 ..");
  const Output output = run(guest(world, "echo more >rc"));
  EXPECT_EQ(output.code, 0) << output.err;
}

TEST_F(ObeyedElsewhereTest, WhatLiesBehindADanglingLinkStaysWhereItIs) {
  const TempDir world;
  make(world,
       "git init -q .; mkdir .claude src; echo >real; ln -s ../gone/../src .claude/src; ln -s ../gone/../.git "
       ".claude/git; ln -s gone/../real .mcp.json; ln -s b b; ln -s ../b .claude/b");
  const Output output = run(guest(world, "echo x >src/new"));
  EXPECT_EQ(output.code, 0) << output.err;
  for (const char* name : {"src/new", ".git/HEAD", "real", "b", ".mcp.json"}) {
    EXPECT_TRUE(fs::exists(fs::symlink_status(fs::path(world / "work") / name))) << name << output.err;
  }
}

// ---- what one session prepares for the next ----

TEST_F(ObeyedElsewhereTest, NoSessionUncoversWhatThePolicyHides) {
  const TempDir world;
  make(world, "mkdir conf; echo TOPSECRET >conf/secret");
  const std::vector<std::string> hidden{"--hide", "conf/secret"};
  const Output first = run(guest(world, "mv conf c2 || echo stays; mv conf/secret x || echo stays", hidden));
  EXPECT_EQ(first.out, "stays\nstays\n") << first.err;
  const Output second = run(guest(world, "cat conf/secret c2/secret x; true", hidden));
  EXPECT_THAT(second.out, Not(HasSubstr("TOPSECRET")));
  // Without the option it is in view: the file was there to be read.
  EXPECT_EQ(run(guest(world, "cat conf/secret")).out, "TOPSECRET\n");
}

TEST_F(ObeyedElsewhereTest, NoSessionUncoversByAnotherNameWhatIsHidden) {
  const TempDir world;
  make(world,
       "git init -q .; mkdir -p conf/node_modules .claude vend; ln -s ../vend .claude/v; for at in conf/secret single "
       "conf/node_modules/k; do echo >$at; done");
  (void)run(guest(world, "ln conf/secret a; ln single b; ln conf/node_modules/k c"));
  // Of what the host does itself, too.
  (void)must_run(plain(world,
                       "for at in conf/secret single conf/node_modules/k; do echo TOPSECRET >$at; done; "
                       "for at in .envrc .claude/k .git/k vend/k; do ln single $at; done"));
  const std::string read = "cat a b c .envrc .claude/k .git/k vend/k; true";
  const Output output = run(guest(world, read, {"--hide", "conf", "--hide", "single", "--read", "vend"}));
  EXPECT_THAT(output.out, Not(HasSubstr("TOPSECRET"))) << output.err;
  EXPECT_EQ(run(guest(world, read)).out,
            "TOPSECRET\nTOPSECRET\nTOPSECRET\nTOPSECRET\nTOPSECRET\nTOPSECRET\nTOPSECRET\n");
}

TEST_F(ObeyedElsewhereTest, NoSessionUncoversWhatIsHiddenBehindALink) {
  const TempDir world;
  make(world, "mkdir -p real/d; echo TOPSECRET >real/d/s; ln -s real/d lnk");
  const std::vector<std::string> hidden{"--hide", "lnk/s"};
  (void)run(guest(world, "rm lnk; mkdir ev; echo >ev/s; ln -s ev lnk; mv real r2; true", hidden));
  EXPECT_THAT(run(guest(world, "cat lnk/s real/d/s r2/d/s; true", hidden)).out, Not(HasSubstr("TOPSECRET")));
  EXPECT_EQ(run(guest(world, "cat real/d/s")).out, "TOPSECRET\n");
}

// What a linked worktree writes for all of them.
TEST_F(ObeyedElsewhereTest, LinksAmongTheObjectsOfAWorktreesRepositoryArePutAway) {
  const TempDir world;
  make(world,
       "git init -q ../main; cd ../main; git -c user.name=x -c user.email=x@y.test commit -q --allow-empty -m one; "
       "rmdir ../work; git worktree add -q ../work");
  const Output output =
      run(guest(world,
                "(cd \"$(git rev-parse --git-common-dir)\"; rmdir objects/pack; ln -s /tmp objects/pack; "
                "mkfifo objects/x); git -c user.name=x -c user.email=x@y.test commit -q "
                "--allow-empty -m two",
                {"--git", "write"}));
  EXPECT_EQ(output.code, 0) << output.err;
  const fs::path objects = fs::path(world / "main") / ".git/objects";
  for (const char* name : {"pack", "x"}) EXPECT_FALSE(fs::exists(fs::symlink_status(objects / name))) << name;
  EXPECT_THAT(run(plain(world, "git log --oneline")).out, HasSubstr("two"));
}

// What a person keeps beside git's own in a bare repository is theirs.
TEST_F(ObeyedElsewhereTest, ABareRepositoryThatMayBeWrittenKeepsItsWorktrees) {
  const TempDir world;
  make(
      world,
      "git init -q --bare ../bare; mkdir -p ../bare/main/bin; ln -s ../x ../bare/main/bin/tool; mkfifo ../bare/main/f");
  const Output output =
      run(guest(world, "ln -s /tmp ../bare/objects/x; ln -s /tmp ../bare/main/y", {"--write", world / "bare"}));
  EXPECT_EQ(output.code, 0) << output.err;
  for (const char* name : {"bare/main/bin/tool", "bare/main/f", "bare/main/y"}) {
    EXPECT_TRUE(fs::exists(fs::symlink_status(world / name))) << name;
  }
  EXPECT_FALSE(fs::exists(fs::symlink_status(world / "bare/objects/x")));
}

TEST_F(ObeyedElsewhereTest, GitCleansUpInside) {
  const TempDir world;
  make(world, "git init -q .; git -c user.name=x -c user.email=x@y.test commit -q --allow-empty -m one");
  const Output output =
      run(guest(world, "git gc -q && git repack -a -d -q && git fsck --no-progress && test ! -e .git/gc.log",
                {"--git", "write"}));
  EXPECT_EQ(output.code, 0) << output.err;
}

TEST_F(ObeyedElsewhereTest, WhatIsHiddenInAShutFolderIsNotTakenForMissing) {
  const TempDir world;
  make(world, "mkdir d; echo TOPSECRET >d/secret; chmod 000 d");
  const Output output = run(guest(world, "chmod 700 d; cat d/secret; true", {"--hide", "d/secret"}));
  EXPECT_THAT(output.out, Not(HasSubstr("TOPSECRET"))) << output.err;
  // To root no folder is shut.
  if (::geteuid() != 0) {
    EXPECT_EQ(output.code, 125);
    EXPECT_THAT(output.err,
                HasSubstr("files.hide './d/secret': it cannot be looked at, since a folder above it is shut"));
  }
  (void)run(plain(world, "chmod 700 d"));
}

TEST_F(ObeyedElsewhereTest, WhatIsObeyedInAShutFolderIsNotTakenForMissing) {
  const TempDir world;
  make(world, "git init -q .; good tools/hooks/pre-commit; git config core.hooksPath tools/hooks; chmod 000 tools");
  const Output output = run(guest(world, "chmod 755 tools; evil tools/hooks/pre-commit; true"));
  if (::geteuid() != 0) {
    EXPECT_EQ(output.code, 125);
    EXPECT_THAT(output.err, HasSubstr("tools/hooks': a folder above it is shut, refusing"));
  }
  EXPECT_THAT(run(plain(world, "chmod 755 tools; commit; cat tools/hooks/pre-commit")).out, Not(HasSubstr("EVIL")));
}

TEST_F(ObeyedElsewhereTest, AShutFolderUncoversNoFifoInTheNextSession) {
  const TempDir world;
  make(world, "mkdir d; mkfifo d/cmd");
  const std::string look = "test -p d/cmd && echo EVIL; true";
  EXPECT_EQ(run(guest(world, look + "; chmod 100 d")).out, "");
  EXPECT_EQ(run(guest(world, "chmod 700 d; " + look)).out, "");
  EXPECT_EQ(run(plain(world, look)).out, "EVIL\n") << "it was there to be found";
}

TEST_F(ObeyedElsewhereTest, NoSessionGivesTheNextOneObjectsOfAnotherRepository) {
  const TempDir world;
  make(world,
       "git init -q ../secret; cd ../secret; echo topsecret >s; git add s; git -c user.name=x -c user.email=x@y.test "
       "commit -qm s; git init -q ../super; cd ../super; git -c user.name=x -c user.email=x@y.test -c "
       "protocol.file.allow=always submodule --quiet add ../secret sub; git init -q ../work");
  const std::string secret = must_run(plain(world, "printf %s $(git -C ../secret rev-parse HEAD:s)"));
  const std::string objects = world / "secret/.git/objects";
  must_run(plain(world, "git -C ../secret rm -q s; echo new >../secret/new"));
  const std::string read = "git cat-file -p " + secret + "; true";
  (void)run(guest(world,
                  "mkdir ev; echo " + objects +
                      " >ev/alternates; cd .git/objects; mv info i2; ln -s ../../ev info; "
                      "mkdir -p info; echo " +
                      objects + " >info/alternates; true",
                  {"--git", "write"}));
  EXPECT_THAT(run(guest(world, read)).out, Not(HasSubstr("topsecret")));
  // And of a submodule, whose folder lies outside of the work folder.
  const std::string alternates = world / "super/.git/modules/sub/objects/info/alternates";
  Command inside = guest(world, "echo " + objects + " >" + alternates + "; true", {"--git", "write"});
  inside.cwd = world / "super/sub";
  const Output output = run(inside);
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_FALSE(fs::exists(alternates)) << output.err;
  // The host may: then a guest has them.
  write_file(fs::path(world / "work") / ".git/objects/info/alternates", objects + "\n");
  EXPECT_EQ(run(guest(world, read)).out, "topsecret\n");
}

TEST_F(ObeyedElsewhereTest, NoSessionGivesAnotherBesideItObjectsOfAnotherRepository) {
  const TempDir world;
  make(world,
       "git init -q ../secret; cd ../secret; echo topsecret >s; git add s; git -c user.name=x -c user.email=x@y.test "
       "commit -qm s; git clone -q --shared ../secret ../shared");
  const std::string secret = must_run(plain(world, "printf %s $(git -C ../secret rev-parse HEAD:s)"));
  const std::string read = "git cat-file -p " + secret + "; true";
  {
    Process beside(guest(world, "git init -q .; echo " + (world / "secret/.git/objects") +
                                    " >.git/objects/info/alternates; echo ready; exec sleep 60"));
    ASSERT_EQ(beside.read_line(), "ready");
    EXPECT_THAT(run(guest(world, read)).out, Not(HasSubstr("topsecret")));
  }
  // What the host had made before is as good as ever.
  Command other = guest(world, "echo ready; exec sleep 60");
  other.cwd = world / "shared";
  Process beside(other);
  ASSERT_EQ(beside.read_line(), "ready");
  other = guest(world, read);
  other.cwd = world / "shared";
  EXPECT_EQ(run(other).out, "topsecret\n");
}

// A cache is the project's, and nobody looks through it.
TEST_F(ObeyedElsewhereTest, NoLinkLeadsIntoACacheOfBelljars) {
  const TempDir world;
  make(world, "mkdir keep; ln -s keep fine; ln -s /usr/share share");
  EXPECT_EQ(run(guest(world, "mkdir -p ~/.cache/deep/r; echo evil >~/.cache/deep/r/x")).code, 0);
  std::string deep;
  for (const auto& entry : fs::recursive_directory_iterator(world / "home")) {
    if (entry.path().filename() == "deep") deep = entry.path();
  }
  ASSERT_THAT(deep, HasSubstr("/belljar/projects/")) << "where the guest's own ~/.cache lies";
  const Output output =
      run(guest(world, "ln -s " + deep + "/r direct; ln -s " + fs::path(deep).parent_path().parent_path().string() +
                           " above; ln -s above/*/deep/r behind; ln -s keep other"));
  EXPECT_EQ(output.code, 0) << output.err;
  for (const char* name : {"direct", "above"}) EXPECT_FALSE(fs::is_symlink(fs::path(world / "work") / name)) << name;
  EXPECT_FALSE(fs::exists(fs::path(world / "work/behind") / "x"));
  for (const char* name : {"other", "fine", "share"})
    EXPECT_TRUE(fs::is_symlink(fs::path(world / "work") / name)) << name;
}

}  // namespace
}  // namespace belljar::testing
