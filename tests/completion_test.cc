// `belljar completion`, and small words of the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Output belljar(const std::vector<std::string>& words) {
  Command command{.argv = {belljar_program()}};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  return run(command);
}

// What bash would offer for the words, the last of which is being typed.
std::string offered(const std::string& words, int at) {
  const std::string script = "source <(" + belljar_program() + " completion bash); COMP_WORDS=(" + words +
                             "); COMP_CWORD=" + std::to_string(at) + "; _belljar; echo \"${COMPREPLY[*]}\"";
  return must_run({.argv = {"bash", "--norc", "-c", script}});
}

TEST(Completion, OfBashOffersCommandsOptionsAndChoices) {
  EXPECT_EQ(offered("belljar pr", 1), "probe project\n");
  EXPECT_EQ(offered("belljar run --expo", 2), "--expose\n");
  EXPECT_EQ(offered("belljar run --agent c", 3), "claude codex\n");
  EXPECT_EQ(offered("belljar run --net ''", 3), "allow deny\n");
  EXPECT_EQ(offered("belljar policy s", 2), "show\n");
  EXPECT_EQ(offered("belljar run -- --expo", 3), "\n");
}

// Every option of --help is in each of them, so that none goes stale.
TEST(Completion, HasEveryOptionOfTheHelp) {
  const std::string help = belljar({"run", "--help"}).out;
  size_t found = 0;
  for (size_t at = help.find("\n  --"); at != std::string::npos; at = help.find("\n  --", at + 1)) {
    const std::string name = help.substr(at + 5, help.find(' ', at + 5) - at - 5);
    ++found;
    for (const char* kind : {"bash", "zsh"}) EXPECT_THAT(belljar({"completion", kind}).out, HasSubstr("--" + name));
    EXPECT_THAT(belljar({"completion", "fish"}).out, HasSubstr("-l " + name));
  }
  EXPECT_GT(found, 10U);
}

TEST(Completion, OfTheManPageIsTheOneInTheTree) {
  EXPECT_EQ(belljar({"completion", "man"}).out, read_text(BELLJAR_TESTS_DIR "/../docs/belljar.1"))
      << "belljar completion man >docs/belljar.1";
}

TEST(Completion, KnowsNoOtherShell) {
  const Output output = belljar({"completion", "tcsh"});
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("tcsh"));
}

TEST(Words, AnAgentAlmostNamedIsRefusedWithTheName) {
  const Output output = belljar({"plan", "--agent", "cluade", "--", "true"});
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("did you mean 'claude'?"));
}

TEST(Words, APlanOfACommandThatIsNotThereEndsAsItsRunDoes) {
  const TempDir work;
  Command plan{.argv = {belljar_program(), "plan", "--", "no-such-command-here"}, .cwd = work.path()};
  EXPECT_EQ(run(plan).code, 127);
  EXPECT_EQ(run(sealed(work.path(), {"no-such-command-here"})).code, 127);
}

TEST(Words, AModeThatIsRefusedShowsNoBadge) {
  const TempDir work;
  Command command = sealed(work.path(), {"true"}, {"--mode", "docker", "--net", "allow"});
  command.env["DOCKER_HOST"] = "unix:///nonexistent/engine";
  const Output output = run(command);
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, Not(HasSubstr("weaker than")));
  EXPECT_THAT(output.err, HasSubstr("refusing"));
}

}  // namespace
}  // namespace belljar::testing
