// Nothing outlives a launch: not what the command left behind, not a guest whose launcher was killed at any moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <string>
#include <thread>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::IsEmpty;

class DeathTest : public ::testing::Test {
 protected:
  // A sleep that no other test has.
  std::string marker_ = "sleep 8" + std::to_string(::getpid()) + "." + std::to_string(std::random_device{}() % 100000);

  Output script(const std::string& text) { return run(sealed_script(work_.path(), text)); }
  TempDir work_;
};

TEST_F(DeathTest, OrphansEndWithTheCommandWhoseCodeIsKept) {
  EXPECT_EQ(script("(setsid " + marker_ + " >/dev/null 2>&1 &); exit 3").code, 3);
  EXPECT_THAT(processes_with(marker_), IsEmpty());
}

TEST_F(DeathTest, ADoubleForkedChildsCodeIsNotTheCommands) {
  EXPECT_EQ(script("(sh -c 'exit 9' &); (sh -c 'kill -KILL $$' &); sleep 0.2; exit 4").code, 4);
}

TEST_F(DeathTest, ADaemonThatIgnoresTermEndsToo) {
  EXPECT_EQ(script("setsid sh -c \"trap '' TERM HUP INT; " + marker_ + "\" >/dev/null 2>&1 & exit 5").code, 5);
  EXPECT_THAT(processes_with(marker_), IsEmpty());
}

TEST_F(DeathTest, AStoppedProcessEndsToo) {
  EXPECT_EQ(script(marker_ + " >/dev/null 2>&1 & kill -STOP $!; exit 6").code, 6);
  EXPECT_THAT(processes_with(marker_), IsEmpty());
}

TEST_F(DeathTest, TheEndIsNotHeldUpByWhoKeepsTheOutputOpen) {
  const Output output = script("setsid " + marker_ + " & echo done; exit 2");
  EXPECT_EQ(output.code, 2);
  EXPECT_EQ(output.out, "done\n");
  EXPECT_FALSE(output.timed_out);
}

// The test becomes the parent of whatever belljar leaves (PR_SET_CHILD_SUBREAPER), so that wait() counts exactly what
// is left of a launch, set-up processes included: ECHILD means nothing.
class KillTest : public DeathTest {
 protected:
  void SetUp() override { ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }

  // Within a second on a machine that has time. Here other tests run beside this one, and what outlives its launcher
  // would do so for good: patience hides nothing.
  bool everything_gone(std::chrono::seconds patience = std::chrono::seconds(10)) {
    return eventually(
        [] {
          while (::waitpid(-1, nullptr, WNOHANG) > 0) {
          }
          return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
        },
        patience);
  }

  Command long_launch(const std::string& text) {
    Command command = sealed_script(work_.path(), text);
    command.out = command.err = Stream::null();
    return command;
  }
};

TEST_F(KillTest, NoticesWhatIsLeft) {
  const Output left = run({.argv = {"sh", "-c", "setsid " + marker_ + " >/dev/null 2>&1 & echo $!"}});
  EXPECT_FALSE(everything_gone(std::chrono::seconds(0)));
  ASSERT_EQ(::kill(std::stoi(left.out), SIGKILL), 0);
  EXPECT_TRUE(everything_gone());
}

// With the launcher the proxy is gone: E14 of shared/cases/egress.md.
TEST_F(KillTest, ARunningGuestDiesWithItsLauncher) {
  Command command = sealed_script(work_.path(), "trap '' TERM HUP; setsid " + marker_ + " & echo ready; " + marker_);
  Process process(command);
  ASSERT_EQ(process.read_line(), "ready");
  process.signal(SIGKILL);
  EXPECT_TRUE(everything_gone());
  EXPECT_THAT(processes_with(marker_), IsEmpty());
}

// Nobody would be left to settle: the session ends at once, says so, and the next launch finds what was left.
TEST_F(KillTest, ASessionWhoseSettlerIsKilledEndsAndIsRecovered) {
  const TempDir state;
  Command command = sealed_script(work_.path(), "trap '' TERM; echo evil >.envrc; echo ready; " + marker_);
  command.env["XDG_STATE_HOME"] = state.path();
  Process process(command);
  ASSERT_EQ(process.read_line(), "ready");
  // Of the launcher's children the one that is not init, nor what watches over bubblewrap.
  const std::string settler =
      run({.argv = {"sh", "-c",
                    "for p in $(pgrep -P " + std::to_string(process.pid()) +
                        "); do grep -qE 'belljar-(guest|watch)' /proc/$p/comm || echo $p; done"}})
          .out;
  ASSERT_FALSE(settler.empty());
  ASSERT_EQ(::kill(std::stoi(settler), SIGKILL), 0);
  const Output output = process.wait();
  EXPECT_EQ(output.code, 125);
  EXPECT_THAT(output.err, ::testing::HasSubstr("the process that settles the session was ended"));
  EXPECT_TRUE(everything_gone());
  EXPECT_THAT(processes_with(marker_), IsEmpty());
  Command next = sealed_script(work_.path(), "test -e .envrc && echo there");
  next.env["XDG_STATE_HOME"] = state.path();
  EXPECT_EQ(run(next).out, "");
}

TEST_F(KillTest, AGuestDiesWithALauncherKilledAtAnyMomentOfTheSetUp) {
  // The whole set-up takes some milliseconds; the moments are spread over it and beyond, never twice the same.
  std::mt19937 random(std::random_device{}());
  const char* rounds = std::getenv("BELLJAR_KILL_ROUNDS");
  for (int round = 0; round < (rounds != nullptr ? std::atoi(rounds) : 150); ++round) {
    const auto delay = std::chrono::microseconds(random() % (round % 2 == 0 ? 12000 : 40000));
    const Process process(long_launch(marker_));
    std::this_thread::sleep_for(delay);
    process.signal(SIGKILL);
    ASSERT_TRUE(everything_gone()) << "killed after " << delay.count() << " us";
    ASSERT_THAT(processes_with(marker_), IsEmpty()) << "killed after " << delay.count() << " us";
  }
}

}  // namespace
}  // namespace belljar::testing
