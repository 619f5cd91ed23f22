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
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A pseudo-terminal with a program on it, seen from the person's side.
class Seat {
 public:
  Seat() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    std::array<char, 64> name{};
    if (!master_ || ::grantpt(master_.get()) != 0 || ::unlockpt(master_.get()) != 0 ||
        ::ptsname_r(master_.get(), name.data(), name.size()) != 0) {
      std::abort();
    }
    slave_ = base::Fd(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    resize(33, 101);
  }

  void start(Command command) {
    command.in = command.out = command.err = Stream::from(slave_.get());
    command.new_terminal_session = true;
    process_.emplace(command);
  }
  Process& process() { return *process_; }

  void type(std::string_view keys) const {
    ASSERT_EQ(::write(master_.get(), keys.data(), keys.size()), ssize_t(keys.size()));
  }
  void resize(unsigned short rows, unsigned short columns) const {
    const winsize size{rows, columns, 0, 0};
    ASSERT_EQ(::ioctl(master_.get(), TIOCSWINSZ, &size), 0);
  }
  [[nodiscard]] termios modes() const {
    termios out{};
    EXPECT_EQ(::tcgetattr(slave_.get(), &out), 0);
    return out;
  }

  // Waits until the screen has shown `text` since the last wait that found its text.
  ::testing::AssertionResult shows(const std::string& text) {
    const bool seen = eventually([&] {
      read_some();
      return screen_.find(text, from_) != std::string::npos;
    });
    if (!seen) return ::testing::AssertionFailure() << "'" << text << "' did not come; the screen has:\n" << screen_;
    from_ = screen_.find(text, from_) + text.size();
    return ::testing::AssertionSuccess();
  }
  [[nodiscard]] const std::string& screen() const { return screen_; }

 private:
  void read_some() {
    pollfd wait{master_.get(), POLLIN, 0};
    while (::poll(&wait, 1, 10) > 0 && (wait.revents & POLLIN) != 0) {
      std::array<char, 4096> buffer{};
      const ssize_t n = ::read(master_.get(), buffer.data(), buffer.size());
      if (n <= 0) return;
      screen_.append(buffer.data(), static_cast<size_t>(n));
    }
  }

  base::Fd master_;
  base::Fd slave_;
  std::optional<Process> process_;
  std::string screen_;
  size_t from_ = 0;
};

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
  seat_.start(sealed_script(work_.path(), "trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.05; done"));
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
  seat_.type(belljar_program() + " run -- cat\r");
  ASSERT_TRUE(seat_.shows("run -- cat"));
  seat_.type("hello\r");
  ASSERT_TRUE(seat_.shows("hello\r\nhello"));
  seat_.type("\x1a");
  ASSERT_TRUE(seat_.shows("Stopped"));
  ASSERT_TRUE(seat_.shows("prompt> "));
  seat_.type("fg\r");
  ASSERT_TRUE(seat_.shows("run -- cat"));
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

}  // namespace
}  // namespace belljar::testing
