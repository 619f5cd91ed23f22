// `belljar run --mode none`: no boundary, and all the rest as in a sealed run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class NoneTest : public ::testing::Test {
 protected:
  Output script(const std::string& text, std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--mode", "none", "--net", "allow", "--report", reports_ / "end.json"});
    return run(sealed_script(work_.path(), text, options));
  }
  nlohmann::json settlement() { return nlohmann::json::parse(read_text(reports_ / "end.json"), nullptr, false); }

  TempDir work_;
  TempDir reports_;
};

TEST_F(NoneTest, SaysLoudlyThatThereIsNoBoundary) {
  const Output output = script("echo ran");
  EXPECT_THAT(output.err, HasSubstr("NO BOUNDARY"));
  EXPECT_EQ(output.out, "ran\n");
  EXPECT_EQ(settlement()["tier"], "none");
  EXPECT_TRUE(settlement()["probe"].is_null()) << "nothing was proved";
  EXPECT_THAT(settlement()["weakenings"].dump(), HasSubstr("NO BOUNDARY"));
}

// It is what it says: the host's files and processes are there.
TEST_F(NoneTest, IsTheHost) {
  const TempDir elsewhere;
  EXPECT_EQ(script("echo x >" + (elsewhere / "file") + "; test -d /proc/" + std::to_string(::getpid())).code, 0);
  EXPECT_EQ(read_text(elsewhere / "file"), "x\n");
}

TEST_F(NoneTest, GivesTheExitCodesOfASealedRun) {
  EXPECT_EQ(script("exit 7").code, 7);
  EXPECT_EQ(settlement()["exit"]["reason"], "exited");
  EXPECT_EQ(script("kill -KILL $$").code, 137);
  EXPECT_EQ(settlement()["exit"]["reason"], "signaled");
  EXPECT_EQ(run(sealed(work_.path(), {"no-such-command"}, {"--mode", "none", "--net", "allow"})).code, 127);
  write_file(work_ / "data", "not a program\n");
  EXPECT_EQ(run(sealed(work_.path(), {"./data"}, {"--mode", "none", "--net", "allow"})).code, 126);
}

TEST_F(NoneTest, EndsAtItsDeadlineWithAllItStarted) {
  const std::string marker = "8642." + std::to_string(::getpid());
  const Output output =
      script("trap '' TERM; (trap '' TERM HUP; setsid sleep " + marker + ") & sleep " + marker, {"--timeout", "1s"});
  EXPECT_EQ(output.code, 124);
  EXPECT_EQ(settlement()["limits_hit"][0]["reason"], "deadline");
  EXPECT_THAT(processes_with("sleep " + marker), IsEmpty());
  EXPECT_THAT(settlement()["unreleased"], IsEmpty());
}

// A daemon that has left session, group and parent is still collected.
TEST_F(NoneTest, NothingOutlivesTheCommand) {
  const std::string marker = "9753." + std::to_string(::getpid());
  EXPECT_EQ(
      script("setsid sh -c 'sleep " + marker + " & sleep " + marker + "' </dev/null >/dev/null 2>&1 & exit 3").code, 3);
  EXPECT_THAT(processes_with("sleep " + marker), IsEmpty());
}

TEST_F(NoneTest, PassesSignalsOn) {
  Command command =
      sealed_script(work_.path(), "trap 'echo got; exit 9' USR1; echo ready; while :; do sleep 0.05; done",
                    {"--mode", "none", "--net", "allow"});
  Process process(command);
  ASSERT_EQ(process.read_line(), "ready");
  process.signal(SIGUSR1);
  const auto said = process.read_line();
  const Output output = process.wait();
  EXPECT_EQ(said, "got") << output.err;
  EXPECT_EQ(output.code, 9);
}

// What needs a boundary is refused, never left out in silence.
TEST_F(NoneTest, RefusesWhatItCannotHold) {
  const Output denied = run(sealed_script(work_.path(), "echo ran", {"--mode", "none"}));
  EXPECT_EQ(denied.code, 125);
  EXPECT_THAT(denied.out, Not(HasSubstr("ran")));
  for (const char* limit : {"processes = 100", "scratch_bytes = \"1MiB\"", "scratch_files = 100"}) {
    write_file(reports_ / "p.toml",
               "[isolation]\nmode = \"none\"\nnetwork = \"allow\"\n[limits]\n" + std::string(limit));
    const Output output = run(sealed_script(work_.path(), "echo ran", {"--policy", reports_ / "p.toml"}));
    EXPECT_EQ(output.code, 125) << limit;
    EXPECT_THAT(output.err, HasSubstr("has no boundary to hold it"));
    EXPECT_THAT(output.out, Not(HasSubstr("ran")));
  }
}

TEST_F(NoneTest, HoldsTheLimitsThatAreNamed) {
  write_file(reports_ / "p.toml",
             "[isolation]\nmode = \"none\"\nnetwork = \"allow\"\n[limits]\nopen_files = 77\nfile_bytes = \"8KiB\"\n");
  const Output output = run(sealed_script(work_.path(), "ulimit -n; head -c 100000 /dev/zero >big; wc -c <big",
                                          {"--policy", reports_ / "p.toml"}));
  EXPECT_THAT(output.out, HasSubstr("77\n"));
  EXPECT_THAT(output.out, HasSubstr("8192\n"));
  const Output memory = script("head -c 200000000 /dev/zero | tail; echo on", {"--memory", "64MiB"});
  if (memory.code == 125) {
    EXPECT_THAT(memory.err, HasSubstr("limits 'memory': this host cannot hold it"));
  } else {
    EXPECT_EQ(memory.out, "on\n");
    EXPECT_EQ(settlement()["limits_hit"][0]["reason"], "out_of_memory");
  }
}

}  // namespace
}  // namespace belljar::testing
