// Ways to what programs of the host obey: how the host makes one, what the agent does to it, and what the host does
// then.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace belljar::testing {

// Shell functions for all scripts: an executable that says EVIL, and a config that makes git say it.
inline constexpr const char* kWords =
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

inline void PrintTo(const Way& way, std::ostream* out) {
  *out << way.name;
}

inline const Way kWays[] = {
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

}  // namespace belljar::testing
