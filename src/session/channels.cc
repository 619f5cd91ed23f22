#include "session/channels.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/pair.h"

namespace belljar::session {
namespace {

base::Status add_pipe(Channels& channels, int number) {
  base::Pipe pipe;
  BELLJAR_TRY(pipe.open());
  const bool input = number == STDIN_FILENO;
  base::Fd& ours = input ? pipe.in : pipe.out;
  base::Fd& theirs = input ? pipe.out : pipe.in;
  // Only our end: the flag belongs to the end's own description, and programs expect blocking ones.
  if (::fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0) return base::system_error("fcntl", "pipe", errno);
  const auto index = static_cast<size_t>(number);
  channels.stdio.fds[index] = theirs.get();
  channels.guest_ends[index] = std::move(theirs);
  channels.relays[index] = Relay(input ? Relay::Role::kFromCaller : Relay::Role::kToCaller, number, std::move(ours));
  if (!input && ::isatty(number) == 1) {
    channels.relays[index].set_filter(std::make_unique<TerminalFilter>(channels.screen));
  }
  return {};
}

// Two streams filtered one by one could make a sequence together where a write is cut short. /dev/tty and the terminal
// itself are two files of one terminal, whose device TIOCGDEV tells (Linux 2.6.38).
bool is_same_terminal(int one, int other) {
  unsigned first = 0;
  unsigned second = 0;
  return ::ioctl(one, TIOCGDEV, &first) == 0 && ::ioctl(other, TIOCGDEV, &second) == 0 && first == second;
}

// Every file of the host below it, and by `..` above it, could be opened from there; nothing can be read from it
// either.
base::Status check_kind(int number) {
  struct stat found{};
  if (::fstat(number, &found) != 0 || !S_ISDIR(found.st_mode)) return {};
  return base::refuse("use as descriptor", std::to_string(number), "it is a folder, refusing",
                      "redirect it to a file, a pipe or /dev/null");
}

bool is_same_file(int one, int other) {
  if (is_same_terminal(one, other)) return true;
  struct stat first{};
  struct stat second{};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

base::Result<Channels> open_channels(uint32_t closed, TerminalFilter::Options screen) {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) BELLJAR_TRY(check_kind(number));
  Channels out;
  out.screen = screen;
  out.terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  if (out.terminal) {
    BELLJAR_ASSIGN(out.restorer, TerminalRestorer::start(STDIN_FILENO));
    out.own_screen = Relay::own_description(STDOUT_FILENO);
  }
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if ((closed & (1U << static_cast<unsigned>(number))) != 0) {
      out.stdio.fds[static_cast<size_t>(number)] = number;  // a placeholder that the command never sees
    } else if (number == STDERR_FILENO && !out.terminal && is_same_file(STDOUT_FILENO, STDERR_FILENO)) {
      // `2>&1`: one pipe, so that what is written in turn arrives in turn.
      out.stdio.fds[STDERR_FILENO] = out.stdio.fds[STDOUT_FILENO];
    } else if (!out.terminal || ::isatty(number) != 1) {
      BELLJAR_TRY(add_pipe(out, number));
    }
  }
  return out;
}

}  // namespace belljar::session
