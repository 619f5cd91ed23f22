// What programs of the host obey by way of a path: what a guest does to the folders and links on that way, and what git
// of the host runs afterwards. Each way is tried without a boundary first: there it has to work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// Shell functions for all scripts: an executable that says EVIL, and a config that makes git say it.
constexpr const char* kWords =
    "evil() { mkdir -p \"$(dirname \"$1\")\"; printf '#!/bin/sh\\necho EVIL >&2\\nexit 1\\n' >\"$1\"; chmod +x \"$1\"; "
    "}\n"
    "good() { mkdir -p \"$(dirname \"$1\")\"; printf '#!/bin/sh\\ntrue\\n' >\"$1\"; chmod +x \"$1\"; }\n"
    "evil_config() { printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n"
    "\\tfsmonitor = \"echo EVIL >&2; false\"\\n' >\"$1\"; }\n"
    "commit() { git -c user.name=x -c user.email=x@y.test commit -q --allow-empty -m more 2>&1; }\n";

struct Way {
  const char* name;
  const char* host;   // makes the work folder, in which it starts
  const char* guest;  // what the agent does; may fail
  const char* after;  // by the host: what it prints holds EVIL when the agent got its way
  std::vector<std::string> options = {};
};

void PrintTo(const Way& way, std::ostream* out) {
  *out << way.name;
}

const Way kWays[] = {
    {"AHookThatLinksToAScript",
     "git init -q .; good scripts/pre-commit; ln -s ../../scripts/pre-commit .git/hooks/pre-commit",
     "mv scripts s2; evil evil/pre-commit; ln -s evil scripts", "commit"},
    {"HooksKeptWithTheCode", "git init -q .; good tools/hooks/pre-commit; git config core.hooksPath tools/hooks",
     "mv tools t2; evil ev/hooks/pre-commit; ln -s ev tools", "commit"},
    {"HooksBehindALinkOfTheHosts",
     "git init -q .; good real/hooks/pre-commit; ln -s real tools; git config core.hooksPath tools/hooks",
     "rm tools; evil ev/hooks/pre-commit; ln -s ev tools", "commit"},
    {"AHookBehindTwoLinks", "git init -q .; good tools/pc; ln -s tools/pc a; ln -s ../../a .git/hooks/pre-commit",
     "rm a; evil ev/pc; ln -s ev/pc a", "commit"},
    {"AnotherFolderInThePlaceOfAHooks", "git init -q .; good a/real/pc; ln -s ../../a/real/pc .git/hooks/pre-commit",
     "mv a b; evil a/real/pc; chmod 000 a", "chmod 700 a; commit"},
    {"AConfigThatIsIncluded",
     "git init -q .; mkdir cfg; printf '[user]\\n\\tname = x\\n' >cfg/shared; git config include.path ../cfg/shared",
     "mv cfg c2; mkdir ev; evil_config ev/shared; ln -s ev cfg", "git status 2>&1"},
    {"SettingsThatLieElsewhere", "mkdir -p cfg/vscode; echo good >cfg/vscode/tasks.json; ln -s cfg/vscode .vscode",
     "mv cfg c2; mkdir -p ev/vscode; echo EVIL >ev/vscode/tasks.json; ln -s ev cfg", "cat .vscode/tasks.json"},
    {"SettingsThatLeadNowhereYet", "ln -s cfg/vscode .vscode",
     "mkdir -p ev/vscode; echo EVIL >ev/vscode/tasks.json; ln -s ev cfg", "cat .vscode/tasks.json"},
    {"AGitFolderUnderAnotherName", "mkdir gd; git init -q --separate-git-dir=gd/repo .",
     "mv gd gd2; mkdir -p gd; cp -r gd2/repo gd/repo; evil_config gd/repo/config", "git status 2>&1"},
    {"HooksOfANestedRepository",
     "git init -q sub; git -C sub config core.hooksPath .githooks; good sub/.githooks/pre-commit",
     "evil sub/.githooks/pre-commit", "cd sub; commit"},
    {"AnIncludeOfANestedRepository",
     "git init -q sub; echo >sub/shared.cfg; git -C sub config include.path ../shared.cfg",
     "evil_config sub/shared.cfg", "cd sub; git status 2>&1"},
    {"HooksOfTheRepositoryAbove",
     "git init -q ..; git -C .. config core.hooksPath work/githooks; good githooks/pre-commit",
     "evil githooks/pre-commit", "commit"},
    {"AMonitorWithArguments", "git init -q .; good tools/fsm; git config core.fsmonitor 'sh tools/fsm -x'",
     "evil tools/fsm", "git status 2>&1"},
    {"AFilter",
     "git init -q .; printf '#!/bin/sh\\ncat\\n' >clean; chmod +x clean; git config filter.x.clean './clean %f'; "
     "echo '*.c filter=x' >.gitattributes; echo >a.c",
     "evil clean", "git add a.c 2>&1"},
    {"TheWorkFolderIsABareRepository", "git init -q --bare .",
     "evil_config config; git config --file config core.worktree .", "git status 2>&1"},
    {"AHookOfABareRepository", "git init -q --bare .", "evil hooks/reference-transaction",
     "git update-ref refs/tags/x $(git hash-object -w -t tree /dev/null) 2>&1"},
    {"AShutGitFolder",
     "git init -q .",
     "mkdir other; cp -r .git/refs .git/objects other/; evil_config other/config; echo ../other >.git/commondir; "
     "chmod 100 .git",
     "git status 2>&1; chmod 700 .git",
     {"--git", "write"}},
    {"ALinkForPacks",
     "git init -q .",
     "rm -rf .git/objects/pack; ln -s /tmp .git/objects/pack",
     "test -L .git/objects/pack && echo EVIL",
     {"--git", "write"}},
    {"AFifoAmongTheObjects",
     "git init -q .",
     "mkfifo .git/objects/pack/x",
     "test -p .git/objects/pack/x && echo EVIL",
     {"--git", "write"}},
    {"AlternatesBehindALink",
     "git init -q .",
     "mkdir info; echo /etc >info/alternates; cd .git/objects; mv info i2; ln -s ../../info info",
     "test -e .git/objects/info/alternates && echo EVIL",
     {"--git", "write"}},
    {"AShutWorkFolder", "true", "echo EVIL >.envrc; chmod 100 .", "chmod 755 .; cat .envrc"},
    {"AFolderThatOnlyLists", "mkdir a", "echo EVIL >a/.envrc; chmod 400 a", "chmod 755 a; cat a/.envrc"},
    {"AShutFolderAboveADeepOne", "mkdir a",
     "echo EVIL >a/.envrc; for i in 1 2 3 4; do mkdir -p a/$i$(printf '/d%.0s' $(seq 70)); done; chmod 100 a",
     "chmod 755 a; cat a/.envrc"},
    {"AHookInAFolderOfHooks",
     "git init -q .; good scripts/pc; mkdir -p tools/hooks; ln -s ../../scripts/pc tools/hooks/pre-commit; git config "
     "core.hooksPath tools/hooks",
     "evil scripts/pc", "commit"},
    {"AHookOfTheRepositoryAbove",
     "git init -q ..; good scripts/pc; ln -s ../../work/scripts/pc ../.git/hooks/pre-commit", "evil scripts/pc",
     "commit"},
    {"AHookOfAGitFolderElsewhere",
     "git init -q --separate-git-dir=../gd .; good scripts/pc; ln -s \"$PWD/scripts/pc\" ../gd/hooks/pre-commit",
     "evil scripts/pc", "commit"},
    {"HooksByWayOfDots",
     "git init -q .; mkdir a; good tools/hooks/pre-commit; git config core.hooksPath a/../tools/hooks",
     "mv a a2; mkdir -p ev/x; evil ev/tools/hooks/pre-commit; ln -s ev/x a", "commit"},
    {"AFilterAtTheTop",
     "git init -q .; good tools/clean; git config filter.x.clean '$(git rev-parse --show-toplevel)/tools/clean %f'; "
     "echo '*.c filter=x' >.gitattributes; echo >a.c",
     "evil tools/clean", "git add a.c 2>&1"},
    {"AConfigThatIsLarge",
     "git init -q .; good hk/pre-commit; for i in $(seq 2000); do echo \"# $i: a line of a hundred characters, as "
     "there are "
     "in a config with many branches and remotes\"; done >>.git/config; git config core.hooksPath hk",
     "evil hk/pre-commit", "commit"},
    {"AnIncludeBehindALink",
     "git init -q .; mkdir sub; printf '[include]\\n\\tpath = other\\n' >sub/real; ln -s sub/real cfg; echo >other; "
     "git "
     "config include.path ../cfg",
     "evil_config other", "git status 2>&1"},
    {"AWorkTreeByConfig",
     "git init -q --bare dot; git -C dot config core.bare false; git -C dot config core.worktree ..; git -C dot config "
     "core.hooksPath hk; good hk/pre-commit",
     "evil hk/pre-commit", "export GIT_DIR=dot; commit"},
    {"ATaskThatLiesElsewhere",
     "mkdir -p .vscode shared; echo good >shared/tasks.json; ln -s ../shared/tasks.json .vscode/tasks.json",
     "echo EVIL >shared/tasks.json", "cat .vscode/tasks.json"},
    {"ATaskThatLiesNowhereYet", "mkdir .vscode; ln -s ../shared/tasks.json .vscode/tasks.json",
     "mkdir shared; echo EVIL >shared/tasks.json", "cat .vscode/tasks.json"},
    {"ASkillThatLiesElsewhere",
     "mkdir -p .claude/skills lib/deploy; echo good >lib/deploy/SKILL.md; ln -s ../../lib/deploy .claude/skills/deploy",
     "mv lib l2; mkdir -p ev/deploy; echo EVIL >ev/deploy/SKILL.md; ln -s ev lib",
     "cat .claude/skills/deploy/SKILL.md"},
    {"ATaskBehindTwoLinks",
     "mkdir -p .vscode a; echo good >a/tasks.json; ln -s a b; ln -s ../b .vscode/b; ln -s b/tasks.json "
     ".vscode/tasks.json",
     "rm b; mkdir ev; echo EVIL >ev/tasks.json; ln -s ev b", "cat .vscode/tasks.json"},
    {"ASkillBehindAFolderThatIsLinked",
     "mkdir -p .claude shared/skills lib/deploy; echo good >lib/deploy/SKILL.md; ln -s ../shared/skills "
     ".claude/skills; "
     "ln -s ../../lib/deploy shared/skills/deploy",
     "echo EVIL >lib/deploy/SKILL.md", "cat .claude/skills/deploy/SKILL.md"},
    {"SettingsInAFolderThatIsALink",
     "mkdir cfg shared; echo good >shared/settings.json; ln -s cfg .claude; ln -s ../shared/settings.json "
     "cfg/settings.json",
     "echo EVIL >shared/settings.json", "cat .claude/settings.json"},
    {"SettingsElsewhereThatLeadBack",
     "mkdir ../dotfiles shared; echo good >shared/settings.json; ln -s ../dotfiles .claude; ln -s "
     "\"$PWD/shared/settings.json\" ../dotfiles/settings.json",
     "echo EVIL >shared/settings.json", "cat .claude/settings.json"},
    {"ATaskBehindALinkToAFolderAbove",
     "mkdir .vscode; echo good >tasks.json; ln -s .. .vscode/root; ln -s root/tasks.json .vscode/tasks.json",
     "echo EVIL >tasks.json", "cat .vscode/tasks.json"},
    {"AHookBehindALinkToTheWorkFolder",
     "mkdir -p .claude hooks; echo good >hooks/h.sh; ln -s . current; ln -s ../current .claude/ws",
     "rm current; mkdir -p ev/hooks; echo EVIL >ev/hooks/h.sh; ln -s ev current", "cat .claude/ws/hooks/h.sh"},
    {"ASettingBehindALinkInACopy",
     "mkdir -p pkg/.agents z; echo >../mine.json; ln -s \"$PWD/../mine.json\" pkg/.agents/mcp.json; ln -s "
     "../pkg/.agents/mcp.json z/.mcp.json",
     "mv pkg p2; mkdir -p node_modules/q/.agents; echo EVIL >node_modules/q/.agents/mcp.json; ln -s node_modules/q pkg",
     "cat z/.mcp.json"},
    {"ASkillByWayOfDotsBehindALinkedFolder",
     "mkdir -p .claude skills/b x; echo good >skills/b/run; ln -s ../skills .claude/skills; ln -s ../x/../skills/b "
     "skills/a",
     "mv x old; mkdir -p y/z y/skills/b; echo EVIL >y/skills/b/run; ln -s y/z x", "cat .claude/skills/a/run"},
    {"ALinkedFolderThatLeadsAboveItself",
     "mkdir -p .claude shared/skills shared/bin; ln -s ../shared/skills .claude/skills; ln -s .. shared/skills/all; "
     "echo good >shared/bin/run",
     "echo EVIL >shared/bin/run", "cat .claude/skills/all/bin/run"},
    {"ASkillCalledWorktrees",
     "mkdir -p .claude skills/worktrees lib; echo good >lib/wt.md; ln -s ../skills .claude/skills; ln -s "
     "../../lib/wt.md skills/worktrees/SKILL.md",
     "echo EVIL >lib/wt.md", "cat .claude/skills/worktrees/SKILL.md"},
    {"APartOfAHookInAFolderOfHooks",
     "git init -q .; mkdir -p githooks/lib scripts; echo true >scripts/c.sh; ln -s ../../scripts/c.sh "
     "githooks/lib/c.sh; printf '#!/bin/sh\\n. githooks/lib/c.sh\\n' >githooks/pre-commit; chmod +x "
     "githooks/pre-commit; git config core.hooksPath githooks",
     "echo 'echo EVIL >&2' >scripts/c.sh", "commit"},
    {"AnotherNameOfAConfig", "git init -q .; ln .git/config cfg", "evil_config cfg", "git status 2>&1"},
    {"ThePersonsConfigInTheWorkFolder", "git init -q .; echo >gitconfig; ln -s \"$PWD/gitconfig\" ~/.gitconfig",
     "printf '[core]\\n\\tfsmonitor = \"echo EVIL >&2; false\"\\n' >gitconfig", "git status 2>&1"},
    {"AnotherNameInASettingsFolderThatMayBeWritten",
     "mkdir .vscode; echo good >.mcp.json; ln .mcp.json .vscode/m",
     "echo EVIL >.vscode/m",
     "cat .mcp.json",
     {"--write", ".vscode"}},
    {"AnotherNameOfAHook", "git init -q .; good scripts/pc; ln scripts/pc .git/hooks/pre-commit",
     "printf '#!/bin/sh\\necho EVIL >&2\\nexit 1\\n' >scripts/pc", "commit"},
    {"AnotherNameOfAHookThatIsKeptWithTheCode",
     "git init -q .; good scripts/pre-commit; ln scripts/pre-commit data; git config core.hooksPath scripts",
     "printf '#!/bin/sh\\necho EVIL >&2\\nexit 1\\n' >data", "commit"},
    {"AnotherNameOfSettings", "echo good >.mcp.json; ln .mcp.json data", "echo EVIL >data", "cat .mcp.json"},
    {"AnotherNameOfATask", "mkdir .vscode; echo good >.vscode/tasks.json; ln .vscode/tasks.json data",
     "echo EVIL >data", "cat .vscode/tasks.json"},
    {"SettingsByWayOfDots", "mkdir a; echo good >real; ln -s a/../real .mcp.json",
     "rmdir a; mkdir -p ev/x; echo EVIL >ev/real; ln -s ev/x a", "cat .mcp.json"},
    {"SettingsByWayOfDotsBehindNothing", "echo good >real; ln -s a/../real .mcp.json",
     "mkdir -p ev/x; echo EVIL >ev/real; ln -s ev/x a", "cat .mcp.json"},
    {"AShellsFileOfTheHome", "echo good >bashrc; ln -s \"$PWD/bashrc\" ~/.bashrc", "echo EVIL >bashrc",
     "cat ~/.bashrc"},
    {"AShellsFileOfTheHomeBehindTwoLinks", "mkdir a; echo good >a/rc; ln -s a/rc rc; ln -s \"$PWD/rc\" ~/.bashrc",
     "rm rc; echo EVIL >rc", "cat ~/.bashrc"},
    {"AShellsFileOfTheHomeThatIsToCome", "ln -s \"$PWD/rc\" ~/.bashrc", "echo EVIL >rc", "cat ~/.bashrc"},
    {"AnotherNameOfAShellsFileOfTheHome", "echo good >rc; ln rc ~/.bashrc", "echo EVIL >rc", "cat ~/.bashrc"},
    {"AFolderOfSettingsOfTheHome", "mkdir cl; ln -s \"$PWD/cl\" ~/.claude", "echo EVIL >cl/settings.json",
     "cat ~/.claude/settings.json"},
    {"ASkillOfTheHome",
     "mkdir -p ~/.claude/skills my/skill; echo good >my/skill/run; ln -s \"$PWD/my/skill\" ~/.claude/skills/s",
     "mv my m2; mkdir -p my/skill; echo EVIL >my/skill/run; echo EVIL >m2/skill/run", "cat ~/.claude/skills/s/run"},
    {"ADocumentForAllSessions", "mkdir ~/.claude; echo good >all.md; ln -s \"$PWD/all.md\" ~/.claude/CLAUDE.md",
     "echo EVIL >all.md", "cat ~/.claude/CLAUDE.md"},
    {"WhatASkillOfTheChosenAgentLeadsTo",
     "mkdir -p ~/.codex/skills/s lib; echo good >lib/run; ln -s \"$PWD/lib/run\" ~/.codex/skills/s/run",
     "echo EVIL >lib/run",
     "cat ~/.codex/skills/s/run",
     {"--agent", "codex"}},
    {"ServersOfTheHome",
     "echo {} >servers.json; ln -s \"$PWD/servers.json\" ~/.claude.json; ",
     "echo EVIL >servers.json",
     "cat ~/.claude.json",
     {"--agent", "codex"}},
    {"ATaskOfTheFolderAbove", "mkdir ../.vscode; echo good >tasks.json; ln -s ../work/tasks.json ../.vscode/tasks.json",
     "echo EVIL >tasks.json", "cat ../.vscode/tasks.json"},
    {"TheServersOfTheFolderAbove", "echo good >mcp.json; ln -s work/mcp.json ../.mcp.json", "echo EVIL >mcp.json",
     "cat ../.mcp.json"},
    {"ATemplateOfRepositories", "mkdir -p tpl/hooks; git config --global init.templateDir \"$PWD/tpl\"",
     "evil tpl/hooks/post-commit; printf '[core]\n\tfsmonitor = \"echo EVIL >&2; false\"\n' >tpl/config",
     "git init -q ../new; cd ../new; commit; git status 2>&1"},
    {"AScriptOfAFilterAtTheTop",
     "git init -q .; echo '{print}' >strip.awk; git config filter.x.clean 'awk -f strip.awk'; echo '*.c filter=x' "
     ">.gitattributes; echo >a.c",
     "echo 'BEGIN{system(\"echo EVIL >&2\")}' >strip.awk", "git add a.c 2>&1"},
    {"AFilterThatStepsIntoAFolder",
     "git init -q .; good tools/h; git config filter.x.clean 'cd tools && ./h'; echo '*.c filter=x' >.gitattributes; "
     "echo >a.c",
     "evil tools/h", "git add a.c 2>&1"},
    {"HooksByWayOfAnothersHome",
     "git init -q .; good hk/pre-commit; git config core.hooksPath \"~daemon/../..$PWD/hk\"", "evil hk/pre-commit",
     "commit"},
    {"ASkillBehindALinkToPackages",
     "mkdir -p .claude/skills links node_modules/sk; echo good >node_modules/sk/S.md; ln -s ../node_modules/sk "
     "links/sk; "
     "ln -s ../../links/sk .claude/skills/sk",
     "rm links/sk && mkdir links/sk && echo EVIL >links/sk/S.md", "cat .claude/skills/sk/S.md"},
    {"APackageThatTheHomeObeys",
     "mkdir -p ~/.claude/skills node_modules/sk; echo good >node_modules/sk/S.md; ln -s \"$PWD/node_modules/sk\" "
     "~/.claude/skills/sk",
     "echo EVIL >node_modules/sk/S.md", "cat ~/.claude/skills/sk/S.md"},
    {"SettingsWithoutADot", "true", "echo EVIL >OpenCode.json", "cat OpenCode.json"},
    {"ALinkInTheHistory",
     "mkdir -p ~/.codex/log; echo >~/rc",
     "ln -s ~/rc ~/.codex/log/new.log",
     "echo EVIL >>~/.codex/log/new.log; cat ~/rc",
     {"--agent", "codex"}},
    {"AFifoInTheHistory",
     "mkdir -p ~/.codex/log",
     "mkfifo ~/.codex/log/new.log",
     "test -p ~/.codex/log/new.log && echo EVIL",
     {"--agent", "codex"}},
    {"ARepositoryInTheHistory",
     "mkdir -p ~/.codex/sessions",
     "git init -q ~/.codex/sessions/x; git init -q --bare ~/.codex/sessions/y; evil_config "
     "~/.codex/sessions/x/.git/config; "
     "evil_config ~/.codex/sessions/y/config; git config -f ~/.codex/sessions/y/config core.worktree ..",
     "cd ~/.codex/sessions/x; git status 2>&1; cd ../y; git status 2>&1",
     {"--agent", "codex"}},
    {"ADevelopmentContainer", "true", "echo EVIL >.devcontainer.json", "cat .devcontainer.json"},
};

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
