// A project's own policy as a person meets it: defaults of a folder, and a file that an agent may have edited.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ProjectTest : public ::testing::Test {
 protected:
  ProjectTest() : state_(dir_ / "state"), work_(dir_ / "work") {
    ::mkdir(work_.c_str(), 0755);
    ::mkdir(state_.c_str(), 0700);
  }

  Output belljar(std::vector<std::string> words) const {
    words.insert(words.begin(), belljar_program());
    return run(at_home({.argv = std::move(words)}));
  }
  Output script(const std::string& text, const std::vector<std::string>& options = {}) const {
    return run(at_home(sealed_script(work_, text, options)));
  }

  TempDir dir_;
  std::string state_;
  std::string work_;

 private:
  Command at_home(Command command) const {
    command.cwd = work_;
    command.env["XDG_STATE_HOME"] = state_;
    command.env["XDG_CONFIG_HOME"] = dir_ / "config";
    return command;
  }
};

TEST_F(ProjectTest, ADefaultHoldsForEveryLaunchInTheFolder) {
  EXPECT_EQ(script("echo \"[$COLOUR]\"").out, "[]\n");
  ASSERT_EQ(belljar({"project", "set", "--env", "COLOUR=green"}).code, 0);
  EXPECT_EQ(script("echo \"[$COLOUR]\"").out, "[green]\n");
  EXPECT_EQ(belljar({"project", "ls"}).out, work_ + "\n");
  EXPECT_THAT(belljar({"project", "show"}).out, HasSubstr("green"));
  // A flag of the launch has the last word.
  EXPECT_EQ(belljar({"run", "--env", "COLOUR=red", "--", "sh", "-c", "echo $COLOUR"}).out, "red\n");
  ASSERT_EQ(belljar({"project", "unset"}).code, 0);
  EXPECT_EQ(script("echo \"[$COLOUR]\"").out, "[]\n");
}

TEST_F(ProjectTest, ADefaultThatCannotHoldIsNotStored) {
  const Output output = belljar({"project", "set", "--mode", "none"});
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("contradicts"));
  EXPECT_EQ(belljar({"project", "ls"}).out, "");
}

// H26: the agent writes the policy of the next run.
TEST_F(ProjectTest, AFileTheAgentWroteOrChangedCountsOnlyWhenTrusted) {
  const std::string policy = "[env]\nset = { COLOUR = \"green\" }\n";
  write_file(work_ + "/.belljar.toml", policy);
  Output output = script("echo \"[$COLOUR]\"");
  EXPECT_EQ(output.out, "[]\n");
  EXPECT_THAT(output.err, HasSubstr("nobody has trusted it"));

  output = belljar({"trust", "--yes"});
  ASSERT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("WIDENS   env.set.COLOUR = \"green\""));
  output = script("echo \"[$COLOUR]\"");
  EXPECT_EQ(output.out, "[green]\n");
  EXPECT_EQ(output.err, "");

  // An editor, or an agent outside of Belljar.
  write_file(work_ + "/.belljar.toml", policy + "[isolation]\nnetwork = \"allow\"\n");
  output = script("echo \"[$COLOUR]\"; ls /sys/class/net 2>/dev/null; cat /proc/net/dev");
  EXPECT_THAT(output.err, AllOf(HasSubstr("has changed since"), Not(HasSubstr("weaker than"))));
  EXPECT_THAT(output.out, HasSubstr("[]\n"));
}

// What the next launch reads is not the agent's to write: it could take away what narrows it.
TEST_F(ProjectTest, WhatAPolicyWasReadFromIsReadOnly) {
  write_file(work_ + "/.belljar.toml", "extends = [\"./conf/more.toml\"]\n[files]\nhide = [\"./secret\"]\n");
  write_file(work_ + "/conf/more.toml", "[env]\nset = { COLOUR = \"green\" }\n");
  write_file(work_ + "/own.toml", "[files]\nhide = [\"./secret\"]\n");
  write_file(work_ + "/secret", "a secret");
  ASSERT_EQ(belljar({"trust", "--yes"}).code, 0);
  const std::string attack =
      "echo '# x' >>conf/more.toml; mv conf/more.toml y; mv conf z; mkdir conf; echo '# x' >conf/more.toml; "
      "echo >>own.toml; mv own.toml w; cat secret; echo \"[$COLOUR]\"";
  for (int session = 0; session < 2; ++session) {
    const Output output = script(attack, {"--policy", work_ + "/own.toml"});
    EXPECT_EQ(output.out, "[green]\n") << output.err;
    EXPECT_THAT(output.err, Not(HasSubstr("is not used")));
  }
  EXPECT_EQ(read_text(work_ + "/own.toml"), "[files]\nhide = [\"./secret\"]\n");
}

TEST_F(ProjectTest, TrustIsNotGivenWithoutAPersonOrAFlag) {
  EXPECT_THAT(belljar({"trust"}).err, HasSubstr("there is no .belljar.toml"));
  write_file(work_ + "/.belljar.toml", "[isolation]\nallow_hosts = [\"a.test\"]\n[files]\nhide = [\"./x\"]\n");
  const Output output = belljar({"trust"});
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, HasSubstr("nobody can be asked"));
  EXPECT_THAT(output.out, AllOf(HasSubstr("WIDENS   isolation.allow_hosts = \"a.test\""),
                                HasSubstr("narrows  files.hide = \"./x\"")));
  EXPECT_EQ(belljar({"trust", "--list"}).out, "");
}

TEST_F(ProjectTest, ItSaysWhereThePolicyComesFrom) {
  ASSERT_EQ(belljar({"project", "set", "--allow-host", "a.test"}).code, 0);
  write_file(work_ + "/.belljar.toml", "git = \"write\"\n");
  const Output output = belljar({"policy", "show", "--explain"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("# built-in policy: used\n# user default "),
                    HasSubstr("# project default " + work_ + ": used\n# project file " + work_ +
                              "/.belljar.toml: not used: nobody has trusted it\n"),
                    HasSubstr("git = \"read\"  # built-in policy"), HasSubstr("\"a.test\",  # project default:")));
}

TEST_F(ProjectTest, TheStateIsNotInTheGuest) {
  ASSERT_EQ(belljar({"project", "set", "--env", "COLOUR=green"}).code, 0);
  EXPECT_EQ(script("ls '" + state_ + "/belljar' 2>/dev/null | wc -l").out, "0\n");
}

}  // namespace
}  // namespace belljar::testing
