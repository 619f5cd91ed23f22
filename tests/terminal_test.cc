// A person at a terminal: keys, window size, job control, and the terminal as it was afterwards.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "support/belljar.h"
#include "support/process.h"
#include "support/seat.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

bool same_modes(const termios& one, const termios& other) {
  return one.c_iflag == other.c_iflag && one.c_oflag == other.c_oflag && one.c_cflag == other.c_cflag &&
         one.c_lflag == other.c_lflag && std::memcmp(one.c_cc, other.c_cc, sizeof one.c_cc) == 0;
}

class TerminalTest : public ::testing::Test {
 protected:
  TempDir work_;
  Seat seat_;
};

TEST_F(TerminalTest, IsOneOfTheGuestsOwn) {
  seat_.start(sealed_script(work_.path(), "tty; stty size; ls /dev/pts; echo end"));
  EXPECT_TRUE(seat_.shows("/dev/pts/0\r\n33 101\r\n0  ptmx\r\nend"));
  EXPECT_EQ(seat_.process().wait().code, 0);
}

TEST_F(TerminalTest, FollowsTheWindow) {
  // The signal of the first size may come after the program is there.
  seat_.start(sealed_script(work_.path(),
                            "trap 'test \"$(stty size)\" = \"50 60\" && stty size && exit 5' WINCH; echo ready; "
                            "while :; do sleep 0.05; done"));
  ASSERT_TRUE(seat_.shows("ready"));
  seat_.resize(50, 60);
  EXPECT_TRUE(seat_.shows("50 60"));
  EXPECT_EQ(seat_.process().wait().code, 5);
}

TEST_F(TerminalTest, InterruptReachesTheForegroundOnly) {
  seat_.start(sealed_script(work_.path(), "trap 'echo interrupted; exit 7' INT; echo ready; sleep 30; sleep 30"));
  ASSERT_TRUE(seat_.shows("ready"));
  seat_.type("\x03");
  EXPECT_TRUE(seat_.shows("interrupted"));
  EXPECT_EQ(seat_.process().wait().code, 7);
}

TEST_F(TerminalTest, QuitEndsTheCommandByItsSignal) {
  seat_.start(sealed_script(work_.path(), "echo ready; exec sleep 30"));
  ASSERT_TRUE(seat_.shows("ready"));
  seat_.type("\x1c");
  EXPECT_EQ(seat_.process().wait().code, 128 + SIGQUIT);
}

TEST_F(TerminalTest, IsAsItWasWhenTheCommandLeftItRaw) {
  const termios before = seat_.modes();
  seat_.start(sealed_script(work_.path(), "stty raw -echo; echo ready"));
  EXPECT_TRUE(seat_.shows("ready"));
  EXPECT_EQ(seat_.process().wait().code, 0);
  EXPECT_TRUE(same_modes(before, seat_.modes()));
}

TEST_F(TerminalTest, IsAsItWasWhenTheLauncherWasToldToEnd) {
  const termios before = seat_.modes();
  seat_.start(sealed_script(work_.path(), "trap '' TERM; echo ready; while :; do sleep 0.05; done"));
  ASSERT_TRUE(seat_.shows("ready"));
  EXPECT_FALSE(same_modes(before, seat_.modes())) << "raw while it runs, else this test shows nothing";
  seat_.process().signal(SIGTERM);
  EXPECT_EQ(seat_.process().wait().code, 128 + SIGKILL);
  EXPECT_TRUE(same_modes(before, seat_.modes()));
}

// What was typed for the guest and not read must not be read by the shell.
TEST_F(TerminalTest, DropsWhatWasTypedAhead) {
  Command shell{{"/bin/sh", "-c",
                 belljar_program() + " run -- /bin/sh -c 'echo ready; sleep 1'; echo back; "
                                     "read -r line; echo \"got:$line:\""}};
  shell.cwd = work_.path();
  seat_.start(shell);
  ASSERT_TRUE(seat_.shows("ready"));
  seat_.type("rm -rf everything\r");
  ASSERT_TRUE(seat_.shows("back"));
  seat_.type("fresh\r");
  EXPECT_TRUE(seat_.shows("got:fresh:"));
  EXPECT_EQ(seat_.process().wait().code, 0);
}

TEST_F(TerminalTest, SuspendsAndContinuesUnderAShell) {
  Command shell{{"/bin/bash", "--norc", "--noprofile", "-i"}};
  shell.cwd = work_.path();
  shell.env["PS1"] = "prompt> ";
  shell.env["HISTFILE"] = "/dev/null";
  seat_.start(shell);
  ASSERT_TRUE(seat_.shows("prompt> "));
  // Keys that come before the command is there are nobody's, so it says when it is; its own line does not show the
  // word.
  seat_.type(belljar_program() + " run -- sh -c 'echo rea\"\"dy; exec cat'\r");
  ASSERT_TRUE(seat_.shows("ready\r\n"));
  seat_.type("hello\r");
  ASSERT_TRUE(seat_.shows("hello\r\nhello"));
  seat_.type("\x1a");
  ASSERT_TRUE(seat_.shows("Stopped"));
  ASSERT_TRUE(seat_.shows("prompt> "));
  seat_.type("fg\r");
  ASSERT_TRUE(seat_.shows("exec cat"));
  seat_.type("again\r");
  ASSERT_TRUE(seat_.shows("again\r\nagain"));
  seat_.type("\x04");
  ASSERT_TRUE(seat_.shows("prompt> "));
  seat_.type("exit 3\r");
  EXPECT_EQ(seat_.process().wait().code, 3);
}

// With a terminal for 0 and 1 only, errors go where the person sent them.
TEST_F(TerminalTest, ErrorsMayGoElsewhere) {
  Command command{{"/bin/sh", "-c", belljar_program() + " run -- /bin/sh -c 'tty; echo to-errors >&2' 2> errors"}};
  command.cwd = work_.path();
  seat_.start(command);
  EXPECT_TRUE(seat_.shows("/dev/pts/0"));
  EXPECT_EQ(seat_.process().wait().code, 0);
  EXPECT_EQ(read_text(work_.path() + "/errors"), "to-errors\n");
  EXPECT_THAT(seat_.screen(), Not(HasSubstr("to-errors")));
}

// TIOCSTI would type into the launcher's shell if the guest had its terminal, or into its own from a background job.
TEST_F(TerminalTest, CannotBeTypedInto) {
  // 0x5412 is TIOCSTI, for which Perl has no name; 1 is EPERM.
  seat_.start(sealed(work_.path(),
                     {"perl", "-e", "$c = 'x'; print ioctl(STDIN, 0x5412, $c) ? 'typed' : 'refused ' . ($! + 0)"}));
  EXPECT_TRUE(seat_.shows("refused 1"));
  EXPECT_EQ(seat_.process().wait().code, 0);
}

// kill -9 leaves belljar no time for anything.
TEST_F(TerminalTest, IsAsItWasWhenTheLauncherWasKilled) {
  const termios before = seat_.modes();
  seat_.start(sealed_script(work_.path(), "printf '\\033[?1000h\\033[?25l'; echo ready; sleep 30"));
  ASSERT_TRUE(seat_.shows("ready"));
  ASSERT_FALSE(same_modes(before, seat_.modes())) << "raw while it runs, else this test shows nothing";
  seat_.process().signal(SIGKILL);
  EXPECT_EQ(seat_.process().wait().code, 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return same_modes(before, seat_.modes()); }));
  // And the mouse is no longer reported, the cursor is shown.
  EXPECT_TRUE(seat_.shows("\x1b[?25h"));
  EXPECT_TRUE(seat_.shows("\x1b[?1000l"));
}

TEST_F(TerminalTest, StaysAsTheShellHasItWhenTheLauncherIsKilledWhileItIsStopped) {
  const termios before = seat_.modes();
  seat_.start(sealed_script(work_.path(), "echo ready; kill -STOP $$; sleep 30"));
  ASSERT_TRUE(seat_.shows("ready"));
  ASSERT_TRUE(eventually([&] { return same_modes(before, seat_.modes()); }));
  seat_.process().signal(SIGKILL);
  EXPECT_EQ(seat_.process().wait().code, 128 + SIGKILL);
  EXPECT_TRUE(same_modes(before, seat_.modes()));
  EXPECT_THAT(seat_.screen(), Not(HasSubstr("\x1b[?1000l")));
}

// A shell is in front of a command that has stopped itself, and wants no reports of the mouse typed.
TEST_F(TerminalTest, HasNoneOfTheGuestsModesWhileItIsStopped) {
  seat_.start(sealed_script(work_.path(), "printf '\033[?1000h\033[?1049h\033[>1u'; kill -STOP $$; printf 'going on'"));
  int status = 0;
  ASSERT_EQ(::waitpid(seat_.process().pid(), &status, WUNTRACED), seat_.process().pid());
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(seat_.shows("\x1b[>1u\x1b[<1u\x1b[?1000l\x1b[?1049l"));
  seat_.process().signal(SIGCONT);
  ASSERT_TRUE(seat_.shows("going on"));
  EXPECT_EQ(seat_.process().wait().code, 0);
}

// ---- what reaches the screen ----

// What a hostile command prints, and what of it shows.
constexpr const char* kHostile =
    "printf "
    "'a\\033]52;c;?\\007b\\033Ptmux;\\033\\033]52;c;?\\007\\033\\\\c\\033[21td\\033]8;;file:///"
    "\\007e\\005f\\302\\23321tx'; "
    "printf '\\033'; sleep 0.1; printf ']52;c;?'; sleep 0.1; printf '\\007g\\033]2;title\\007\\033[31mred\\033[0m "
    "end\\n'";
constexpr const char* kHarmless = "abcdefxg\x1b]2;title\x07\x1b[31mred\x1b[0m end\r\n";

TEST_F(TerminalTest, ScreenGetsNoSequenceThatIsForbidden) {
  seat_.start(sealed_script(work_.path(), kHostile));
  EXPECT_TRUE(seat_.shows(kHarmless));
  EXPECT_EQ(seat_.process().wait().code, 0);
  EXPECT_EQ(seat_.screen(), kHarmless);
}

// This test would see it: without Belljar the same bytes arrive.
TEST_F(TerminalTest, ScreenWithoutTheFilterGetsThemAll) {
  Command command{{"/bin/sh", "-c", kHostile}};
  command.cwd = work_.path();
  seat_.start(command);
  EXPECT_TRUE(seat_.shows(" end"));
  EXPECT_THAT(seat_.screen(), HasSubstr("\x1b]52;c;?\x07"));
  EXPECT_EQ(seat_.process().wait().code, 0);
}

TEST_F(TerminalTest, ScreenIsFilteredWhenOnlyOutputOrErrorsAreATerminal) {
  for (const char* redirected : {" </dev/null", " </dev/null 2>errors", " </dev/null 1>&2", " </dev/null 2>/dev/tty"}) {
    Seat seat;
    const std::string script = work_ / "script";
    write_file(script, kHostile);
    Command command{{"/bin/sh", "-c", belljar_program() + " run -- /bin/sh ./script" + redirected}};
    command.cwd = work_.path();
    seat.start(command);
    EXPECT_TRUE(seat.shows(kHarmless)) << redirected;
    EXPECT_EQ(seat.process().wait().code, 0);
    EXPECT_EQ(seat.screen(), kHarmless) << redirected;
  }
}

TEST_F(TerminalTest, ScreenGetsTheClipboardOnlyWhenThePolicySaysSo) {
  const std::string script = "printf 'a\\033]52;c;aGk=\\007b\\033]52;c;?\\007c\\n'";
  seat_.start(sealed_script(work_.path(), script));
  EXPECT_TRUE(seat_.shows("abc\r\n"));
  EXPECT_EQ(seat_.process().wait().code, 0);
  Seat other;
  other.start(sealed_script(work_.path(), script, {"--clipboard", "allow"}));
  EXPECT_TRUE(other.shows("clipboard = allow"));
  EXPECT_TRUE(
      other.shows("a\x1b]52;c;aGk=\x07"
                  "bc\r\n"));
  EXPECT_EQ(other.process().wait().code, 0);
}

// A killed program cannot say that the mouse shall be left alone again.
TEST_F(TerminalTest, ScreenIsLeftWithoutModesOfTheCommands) {
  seat_.start(sealed_script(work_.path(), "printf '\\033[?1049h\\033[?1000h\\033[?25l\\033[>1u'; kill -9 $$"));
  EXPECT_TRUE(seat_.shows("\x1b[>1u\x1b[<1u\x1b[?25h\x1b[?1000l\x1b[?1049l"));
  EXPECT_EQ(seat_.process().wait().code, 128 + SIGKILL);
}

TEST_F(TerminalTest, ScreenLetsQuestionsThatProgramsNeedBeAnswered) {
  const std::string script =
      "stty raw -echo; printf 'ask\\033[c'; head -c 7 | od -An -c | tr -d ' \\n'; stty cooked; echo; echo end";
  seat_.start(sealed_script(work_.path(), script));
  ASSERT_TRUE(seat_.shows("ask\x1b[c"));
  seat_.type("\x1b[?62;c");
  EXPECT_TRUE(seat_.shows("033[?62;c"));
  EXPECT_TRUE(seat_.shows("end"));
  EXPECT_EQ(seat_.process().wait().code, 0);
}

}  // namespace
}  // namespace belljar::testing
