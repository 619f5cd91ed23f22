#include "session/terminal_restorer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>
#include <string_view>

#include "base/pair.h"
#include "base/reap.h"
#include "session/terminal_modes.h"

namespace belljar::session {
namespace {

constexpr char kRaw = 'r';
constexpr char kCooked = 'c';

// A shell that is back already has modes of its own: in those that the launcher left no key is a signal. Nothing here
// waits for a terminal that does not take its output.
void restore(const termios& before, std::string_view sane) {
  termios now{};
  const bool left_raw = ::tcgetattr(1, &now) == 0 && (now.c_lflag & (ISIG | ICANON | ECHO)) == 0;
  if (left_raw) {
    ::tcsetattr(1, TCSANOW, &before);
    ::tcflush(1, TCIFLUSH);
  }
  pollfd wait{1, POLLOUT, 0};
  if (::poll(&wait, 1, 1000) <= 0 || (wait.revents & POLLOUT) == 0) return;
  (void)!::write(1, sane.data(), sane.size());
  if (left_raw) (void)!::write(1, "\r\n", 2);
}

// In the process, with nothing but system calls: the launcher had threads.
[[noreturn]] void wait_and_restore(int line, int terminal, const termios& before, std::string_view sane) {
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
  if (state == kRaw) restore(before, sane);
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
  // The filter would know what was left on; it dies with the launcher.
  std::string sane;
  TerminalModes::end_unknown(sane);
  const pid_t pid = ::fork();
  if (pid < 0) return base::system_error("fork", "", errno);
  if (pid == 0) wait_and_restore(line.out.get(), terminal, before, sane);
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
