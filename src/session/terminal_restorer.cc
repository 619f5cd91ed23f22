#include "session/terminal_restorer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string_view>

#include "base/pair.h"
#include "base/reap.h"

namespace belljar::session {
namespace {

constexpr char kRaw = 'r';
constexpr char kCooked = 'c';

// The filter would know what was left on; it has died with the launcher. What is off already stays as it is. The other
// screen first, then mouse, focus, paste and what else types, the keyboard's flags, the cursor, wrapping, the letters.
constexpr std::string_view kSane =
    "\x1b[?1047l\x1b[?1000;1002;1003;1004;1005;1006;1015;1016;2004;2026;2031;2048l\x1b[<99u\x1b[>4;0m\x1b[?1l\x1b>"
    "\x1b[?25;7h\x0f\x1b(B\x1b[0m";

// A shell that is back already has modes of its own: in those that the launcher left no key is a signal. Nothing here
// waits for a terminal that does not take its output.
void restore(const termios& before) {
  termios now{};
  const bool left_raw = ::tcgetattr(1, &now) == 0 && (now.c_lflag & (ISIG | ICANON | ECHO)) == 0;
  if (left_raw) {
    ::tcsetattr(1, TCSANOW, &before);
    ::tcflush(1, TCIFLUSH);
  }
  pollfd wait{1, POLLOUT, 0};
  if (::poll(&wait, 1, 1000) <= 0 || (wait.revents & POLLOUT) == 0) return;
  (void)!::write(1, kSane.data(), kSane.size());
  if (left_raw) (void)!::write(1, "\r\n", 2);
}

// In the process, with nothing but system calls: the launcher had threads.
[[noreturn]] void wait_and_restore(int line, int terminal, const termios& before) {
  ::setsid();
  sigset_t every;
  ::sigfillset(&every);
  ::sigprocmask(SIG_SETMASK, &every, nullptr);
  // To 0 and 1, and nothing else: a copy of another end would hide that the launcher is gone.
  const int high_line = ::fcntl(line, F_DUPFD, 3);
  const int high_terminal = ::fcntl(terminal, F_DUPFD, 3);
  if (high_line < 0 || high_terminal < 0 || ::dup2(high_line, 0) != 0 || ::dup2(high_terminal, 1) != 1 ||
      ::close_range(2, UINT_MAX, 0) != 0) {
    ::_exit(1);
  }
  char state = kCooked;
  for (;;) {
    char word = 0;
    const ssize_t n = ::read(0, &word, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    state = word;
  }
  if (state == kRaw) restore(before);
  ::_exit(0);
}

}  // namespace

base::Result<TerminalRestorer> TerminalRestorer::start(int terminal) {
  TerminalRestorer out;
  termios before{};
  if (::tcgetattr(terminal, &before) != 0) return base::system_error("look at the terminal", "", errno);
  base::Pipe line;
  BELLJAR_TRY(line.open());
  out.line_ = std::move(line.in);
  const pid_t pid = ::fork();
  if (pid < 0) return base::system_error("fork", "", errno);
  if (pid == 0) wait_and_restore(line.out.get(), terminal, before);
  out.pid_ = pid;
  return out;
}

void TerminalRestorer::note(bool raw) const {
  if (!line_) return;
  const char word = raw ? kRaw : kCooked;
  (void)!::write(line_.get(), &word, 1);
}

void TerminalRestorer::end() {
  line_.reset();
  if (pid_ < 0) return;
  (void)base::reap(pid_);
  pid_ = -1;
}

}  // namespace belljar::session
