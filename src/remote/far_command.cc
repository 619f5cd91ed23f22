#include "remote/far_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "remote/outbox.h"
#include "remote/terminal_pair.h"

namespace belljar::remote {
namespace {

constexpr std::string_view kOperation = "start the launcher on the target";

// What becomes 0, 1 and 2 of the child.
using Ends = std::array<base::Fd, 3>;

base::Result<base::Fd> open_terminal(const LaunchOrder& order, FarCommand& command) {
  BELLJAR_ASSIGN(TerminalPair pair, open_terminal_pair(kOperation));
  winsize size{};
  size.ws_row = order.rows;
  size.ws_col = order.columns;
  ::ioctl(pair.master.get(), TIOCSWINSZ, &size);
  command.terminal = std::move(pair.master);
  return std::move(pair.slave);
}

base::Status open_streams(const LaunchOrder& order, FarCommand& command, Ends& ends) {
  base::Fd slave;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (order.streams[i] == StreamKind::kClosed) continue;
    if (order.streams[i] == StreamKind::kTerminal) {
      if (!slave) {
        BELLJAR_ASSIGN(slave, open_terminal(order, command));
      }
      ends[i] = base::Fd(::fcntl(slave.get(), F_DUPFD_CLOEXEC, 3));
      // One reader and one writer of the terminal are enough.
      if (i == 0 || (i == 1 || order.streams[1] != StreamKind::kTerminal)) {
        command.streams[i] = base::Fd(::fcntl(command.terminal.get(), F_DUPFD_CLOEXEC, 3));
      }
      continue;
    }
    if (i == 2 && order.one_stream && ends[1]) {
      ends[2] = base::Fd(::fcntl(ends[1].get(), F_DUPFD_CLOEXEC, 3));
      continue;
    }
    std::array<int, 2> pair{};
    if (::pipe2(pair.data(), O_CLOEXEC) != 0) return base::system_error(kOperation, "a pipe", errno);
    base::Fd read_end(pair[0]);
    base::Fd write_end(pair[1]);
    ends[i] = std::move(i == 0 ? read_end : write_end);
    command.streams[i] = std::move(i == 0 ? write_end : read_end);
    make_nonblocking(command.streams[i].get());
  }
  return {};
}

[[noreturn]] void become(const LaunchOrder& order, const Ends& ends, int report, const RunOrder& run, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::setsid();
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int kept = report < 0 ? -1 : ::fcntl(report, F_DUPFD, 10);
  for (int i = 0; i < 3; ++i) {
    const base::Fd& end = ends[static_cast<size_t>(i)];
    // One that is closed is held by something, so that nothing else is opened in its place (see Context::closed).
    const int source = end ? end.get() : ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (source < 0 || ::dup2(source, i) != i) ::_exit(125);
  }
  for (size_t i = 0; i < ends.size(); ++i) {
    if (order.streams[i] == StreamKind::kTerminal) ::ioctl(static_cast<int>(i), TIOCSCTTY, 0);
  }
  if (kept > 3) ::close_range(3, static_cast<unsigned>(kept) - 1, 0);
  ::close_range(kept > 0 ? static_cast<unsigned>(kept) + 1 : 3, UINT_MAX, 0);
  if (kept > 0) ::fcntl(kept, F_SETFD, FD_CLOEXEC);
  ::umask(static_cast<mode_t>(order.umask));
  for (const auto& [name, value] : order.environment) ::setenv(name.c_str(), value.c_str(), 1);
  const int code = run(order, kept);
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

base::Result<FarCommand> start_far_command(const LaunchOrder& order, const RunOrder& run) {
  FarCommand out;
  Ends ends;
  BELLJAR_TRY(open_streams(order, out, ends));
  if (order.report) {
    out.report = base::Fd(::memfd_create("belljar-report", MFD_CLOEXEC));
    if (!out.report) return base::system_error(kOperation, "the report", errno);
  }
  const pid_t parent = ::getpid();
  out.pid = ::fork();
  if (out.pid < 0) return base::system_error(kOperation, "", errno);
  if (out.pid == 0) become(order, ends, out.report.get(), run, parent);
  out.pidfd = base::Fd(static_cast<int>(::syscall(SYS_pidfd_open, out.pid, 0)));
  if (!out.pidfd) return base::system_error(kOperation, "pidfd_open", errno);
  return out;
}

}  // namespace belljar::remote
