#include "session/find_program.h"

#include <gtest/gtest.h>

#include "base/temp_tree.h"

namespace belljar::session {
namespace {

using plan::ProgramFact;
using State = plan::ProgramFact::State;

struct Finding {
  const base::TempTree& tree;
  Walker walker{false};

  ProgramFact operator()(const std::string& name, const std::string& path = "/usr/bin:/bin") {
    return find_program(name, path, tree.at("work"), tree.at("home"), walker);
  }
};

TEST(FindProgram, FollowsTheInstallerLayoutOfClaude) {
  const base::TempTree tree;
  tree.file("home/.local/share/claude/versions/2.1",
            "\x7f"
            "ELF",
            true);
  tree.link("home/.local/bin/claude", tree.at("home/.local/share/claude/versions/2.1"));
  const ProgramFact found = Finding{tree}("claude", "/missing:" + tree.at("home/.local/bin"));
  ASSERT_EQ(found.state, State::kFound);
  ASSERT_EQ(found.files.size(), 1U);
  EXPECT_EQ(found.files[0].path, tree.at("home/.local/bin/claude"));
  EXPECT_EQ(found.files[0].file.real, tree.at("home/.local/share/claude/versions/2.1"));
  ASSERT_EQ(found.files[0].file.links.size(), 1U);
}

TEST(FindProgram, LooksThroughEnvForTheInterpreter) {
  const base::TempTree tree;
  tree.file("home/.nvm/versions/node/v20/bin/node",
            "\x7f"
            "ELF",
            true);
  tree.file("home/.npm/lib/node_modules/codex/bin/codex.js", "#!/usr/bin/env -S X=1 node --flag\ncode", true);
  tree.link("home/.npm/bin/codex", "../lib/node_modules/codex/bin/codex.js");
  const std::string path = tree.at("home/.npm/bin") + ":" + tree.at("home/.nvm/versions/node/v20/bin") + ":/usr/bin";
  const ProgramFact found = Finding{tree}("codex", path);
  ASSERT_EQ(found.files.size(), 3U);
  EXPECT_EQ(found.files[1].path, "/usr/bin/env");
  EXPECT_EQ(found.files[1].script, tree.at("home/.npm/lib/node_modules/codex/bin/codex.js"));
  EXPECT_EQ(found.files[2].path, tree.at("home/.nvm/versions/node/v20/bin/node"));
  EXPECT_EQ(found.files[2].script, "");
  EXPECT_TRUE(found.missing.empty());
}

TEST(FindProgram, NamesInterpretersThatAreMissing) {
  const base::TempTree tree;
  tree.file("work/a", "#!/usr/bin/env nosuchnode\n", true);
  tree.file("work/b", "#! /nowhere/sh -e\n", true);
  tree.file("work/c", "#!relative\n", true);
  Finding find{tree};
  EXPECT_EQ(find("./a").missing, std::vector<std::string>{"nosuchnode"});
  EXPECT_EQ(find("./b").missing, std::vector<std::string>{"/nowhere/sh"});
  EXPECT_TRUE(find("./c").missing.empty());
  EXPECT_EQ(find("./c").files.size(), 1U);
}

TEST(FindProgram, EndsWhenScriptsNameEachOther) {
  const base::TempTree tree;
  tree.file("work/a", "#!" + tree.at("work/b") + "\n", true);
  tree.file("work/b", "#!" + tree.at("work/a") + "\n", true);
  EXPECT_EQ(Finding{tree}("./a").files.size(), 2U);
}

TEST(FindProgram, SaysNotFoundOrNotExecutable) {
  const base::TempTree tree;
  tree.file("work/plain", "x");
  tree.folder("work/folder");
  tree.file("first/tool", "x");
  tree.file("second/tool", "#!/bin/sh\n", true);
  Finding find{tree};
  EXPECT_EQ(find("nosuch").state, State::kNotFound);
  EXPECT_EQ(find("./nosuch").state, State::kNotFound);
  EXPECT_EQ(find("./plain").state, State::kNotExecutable);
  EXPECT_EQ(find("./folder").state, State::kNotExecutable);
  EXPECT_EQ(find("./folder/").state, State::kNotExecutable);
  EXPECT_EQ(find("tool", tree.at("first")).state, State::kNotExecutable);
  EXPECT_EQ(find("tool", tree.at("first") + ":" + tree.at("second")).files[0].path, tree.at("second/tool"));
}

TEST(FindProgram, PassesOverRelativeEntriesOfPath) {
  const base::TempTree tree;
  tree.file("work/tool", "#!/bin/sh\n", true);
  Finding find{tree};
  for (const char* path : {"", ".", ":", "work", "./", "../work"}) {
    EXPECT_EQ(find("tool", path).state, State::kNotFound) << path;
  }
}

TEST(FindProgram, NamesTheProgramByTheRealPathOfItsFolder) {
  const base::TempTree tree;
  tree.file("tools/real/x", "#!/bin/sh\n", true);
  tree.link("work/t", "../tools/real");
  EXPECT_EQ(Finding{tree}("t/x").files[0].path, tree.at("tools/real/x"));
}

TEST(FindProgram, TellsAPythonEnvironmentAndAPackage) {
  const base::TempTree tree;
  tree.file("home/venv/pyvenv.cfg", "");
  tree.file("home/venv/bin/tool", "#!" + tree.at("home/venv/bin/python") + "\n", true);
  tree.link("home/venv/bin/python", "/bin/sh");
  tree.file("home/src/cli/package.json", "{}");
  tree.file("home/src/cli/bin/x.js", "#!/usr/bin/env node\n", true);
  tree.file("home/package.json", "{}");
  tree.file("home/bin/y.js", "#!/usr/bin/env node\n", true);
  Finding find{tree};
  const ProgramFact tool = find(tree.at("home/venv/bin/tool"));
  EXPECT_EQ(tool.files[0].venv.real, tree.at("home/venv"));
  ASSERT_GE(tool.files.size(), 2U);
  EXPECT_EQ(tool.files[1].venv.real, tree.at("home/venv")) << "its python is a link out of it";
  EXPECT_EQ(find(tree.at("home/src/cli/bin/x.js")).files[0].package, tree.at("home/src/cli"));
  EXPECT_EQ(find(tree.at("home/bin/y.js")).files[0].package, "") << "never the home itself";
}

}  // namespace
}  // namespace belljar::session
