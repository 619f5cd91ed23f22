#include "plan/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "plan/plan_fixture.h"

namespace belljar::plan {
namespace {

using ::testing::HasSubstr;

ProgramFile at(const std::string& real) {
  ProgramFile out;
  out.path = real;
  out.file = path_fact(FileKind::kFile, real, 1000);
  return out;
}

TEST(ProgramRoot, IsTheSmallestTreeThatWorks) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"/home/a/.local/share/claude/versions/2.1", "/home/a/.local/share/claude/versions/2.1"},
      {"/home/a/.npm-global/lib/node_modules/@x/y/cli.js", "/home/a/.npm-global/lib/node_modules"},
      {"/home/a/p/node_modules/b/node_modules/c/x", "/home/a/p/node_modules"},
      {"/home/a/.nvm/versions/node/v20/lib/node_modules/x/y.js", "/home/a/.nvm/versions/node/v20"},
      {"/home/a/.nvm/versions/node/v20/bin/node", "/home/a/.nvm/versions/node/v20"},
      {"/home/a/.pyenv/versions/3.12/bin/python3", "/home/a/.pyenv/versions/3.12"},
      {"/home/a/.local/share/uv/tools/aider/bin/aider", "/home/a/.local/share/uv/tools/aider"},
      {"/home/a/.local/share/mise/installs/node/22/bin/node", "/home/a/.local/share/mise/installs/node/22"},
      {"/home/a/node_modules", "/home/a/node_modules"},
      {"/home/a/.nvm/versions/node", "/home/a/.nvm/versions/node"},
      {"/home/a/bin/tool", "/home/a/bin/tool"},
  };
  for (const auto& [real, root] : cases) EXPECT_EQ(program_root(at(real)).path, root);
  ProgramFile venv = at("/home/a/venvs/t/bin/tool");
  venv.venv = path_fact(FileKind::kFolder, "/home/a/venvs/t", 1000);
  EXPECT_EQ(program_root(venv).path, "/home/a/venvs/t");
  ProgramFile package = at("/home/a/src/cli/bin/x.js");
  package.package = "/home/a/src/cli";
  EXPECT_EQ(program_root(package).path, "/home/a/src/cli");
}

TEST(Program, InTheHomeIsBoundWithItsLinksAndNamed) {
  Host host;
  host.policy.files.toolchains = policy::Toolchains::kNone;
  host.request.command = {"claude"};
  host.facts.environment["PATH"] = "/home/alice/.local/bin:/usr/bin";
  host.folder("/home/alice/.local/bin");
  host.program("/home/alice/.local/bin/claude",
               through_link(path_fact(FileKind::kFile, "/home/alice/.local/share/claude/versions/2", 1000),
                            "/home/alice/.local/bin/claude", "/home/alice/.local/share/claude/versions/2"));
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->program, "/home/alice/.local/bin/claude");
  EXPECT_EQ(mount_at(*plan, "/home/alice/.local/bin/claude")->kind, MountKind::kLink);
  const Mount* bound = mount_at(*plan, "/home/alice/.local/share/claude/versions/2");
  ASSERT_NE(bound, nullptr);
  EXPECT_FALSE(bound->writable);
  EXPECT_THAT(bound->reason, HasSubstr("program claude"));
  EXPECT_EQ(variable(*plan, "PATH")->value, "/home/alice/.local/bin:/usr/bin");
}

TEST(Program, OfTheSystemOrTheWorkFolderNeedsNothing) {
  Host host;
  const size_t usual = host.plan()->mounts.size();
  host.program("/home/alice/work/node_modules/.bin/x",
               through_link(path_fact(FileKind::kFile, "/home/alice/work/node_modules/x/x.js", 1000),
                            "/home/alice/work/node_modules/.bin/x", "../x/x.js"));
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->mounts.size(), usual);
}

TEST(Program, MissingOrUnexecutableHasTheCodeOfItsExitStatus) {
  Host host;
  host.facts.program = {};
  host.request.command = {"nosuch"};
  auto plan = host.plan();
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ENOENT);
  EXPECT_EQ(plan.error().message(), "find the command 'nosuch': no such program in PATH");
  host.request.command = {"./nosuch"};
  EXPECT_EQ(host.refusal(), "find the command './nosuch': no such program");
  host.facts.program.state = ProgramFact::State::kNotExecutable;
  host.facts.program.files.push_back(at("/home/alice/work/nosuch"));
  plan = host.plan();
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, EACCES);
}

TEST(Program, BesideCredentialsIsRefused) {
  for (const char* real : {"/home/alice/.ssh/tool", "/home/alice/.config/gh/x", "/home/alice/.aws/bin/y"}) {
    Host host;
    host.program(real, path_fact(FileKind::kFile, real, 1000));
    EXPECT_THAT(host.refusal(), HasSubstr("lie beside credentials, refusing (install the program elsewhere)"));
  }
  // A package.json in the home must not make the home a package.
  Host host;
  host.program("/home/alice/x.js", path_fact(FileKind::kFile, "/home/alice/x.js", 1000)).package = "/home/alice";
  EXPECT_THAT(host.refusal(), HasSubstr("lie beside credentials"));
}

TEST(Program, ThatTheAgentCouldHaveLedToIsRefused) {
  Host host;
  ProgramFile& tool = host.program(
      "/home/alice/work/tool",
      through_link(path_fact(FileKind::kFile, "/home/alice/private/x", 1000), "/home/alice/work/tool", "../private/x"));
  EXPECT_THAT(host.refusal(), HasSubstr("a link or script in a folder the agent can write leads to "
                                        "'/home/alice/private/x', refusing"));
  // A virtual environment in the work folder leads to a version manager's python: that shows nothing of the person's.
  tool.file = through_link(path_fact(FileKind::kFile, "/home/alice/.pyenv/versions/3/bin/python", 1000),
                           "/home/alice/work/tool", "/home/alice/.pyenv/versions/3/bin/python");
  EXPECT_EQ(host.refusal(), "");

  host.program("/home/alice/work/run.sh", path_fact(FileKind::kFile, "/home/alice/work/run.sh", 1000));
  ProgramFile interpreter = at("/home/alice/private/interpreter");
  interpreter.script = "/home/alice/work/run.sh";
  host.facts.program.files.push_back(interpreter);
  EXPECT_THAT(host.refusal(), HasSubstr("leads to '/home/alice/private/interpreter', refusing"));
  host.facts.program.files[1].script = "";  // found through the person's PATH
  EXPECT_EQ(host.refusal(), "");
}

TEST(Program, InterpreterInTheHomeIsBoundToo) {
  Host host;
  host.facts.environment["PATH"] = "/home/alice/.nvm/versions/node/v20/bin:/usr/bin";
  host.folder("/home/alice/.nvm/versions/node/v20/bin");
  host.program("/usr/local/bin/tool", path_fact(FileKind::kFile, "/usr/local/lib/node_modules/tool/cli.js", 0));
  host.facts.program.files.push_back(at("/home/alice/.nvm/versions/node/v20/bin/node"));
  host.facts.program.missing = {"deno"};
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_NE(mount_at(*plan, "/home/alice/.nvm/versions/node/v20"), nullptr);
  EXPECT_EQ(variable(*plan, "PATH")->value, "/home/alice/.nvm/versions/node/v20/bin:/usr/bin");
  EXPECT_TRUE(any_contains(plan->notes, "the interpreter 'deno'"));
}

TEST(Program, InTheAgentsOwnFolderCannotBeRewrittenByIt) {
  Host host;
  host.agent_of_one_folder();
  host.request.command = {"claude"};
  host.folder("/home/alice/.claude");
  host.program("/home/alice/.claude/local/claude",
               path_fact(FileKind::kFile, "/home/alice/.claude/local/node_modules/x/cli.js", 1000));
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_NE(mount_at(*plan, "/home/alice/.claude/local/node_modules"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/home/alice/.claude/local/node_modules")->kind, MountKind::kReadOnly);
}

}  // namespace
}  // namespace belljar::plan
