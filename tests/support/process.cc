#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace belljar::testing {
namespace {

using Clock = std::chrono::steady_clock;

struct Ends {
  base::Fd ours;
  int theirs = -1;  // to become the program's descriptor; -1 closes it
  base::Fd keep;    // owns `theirs` where we opened it
};

Ends make_ends(const Stream& stream, bool input) {
  Ends ends;
  switch (stream.kind) {
    case Stream::Kind::kClosed:
      break;
    case Stream::Kind::kFd:
      ends.theirs = stream.fd;
      break;
    case Stream::Kind::kNull:
      ends.keep = base::Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
      ends.theirs = ends.keep.get();
      break;
    case Stream::Kind::kPipe: {
      std::array<int, 2> pair{};
      if (::pipe2(pair.data(), O_CLOEXEC) != 0) std::abort();
      ends.ours = base::Fd(input ? pair[1] : pair[0]);
      ends.keep = base::Fd(input ? pair[0] : pair[1]);
      ends.theirs = ends.keep.get();
      if (::fcntl(ends.ours.get(), F_SETFL, O_NONBLOCK) != 0) std::abort();
      break;
    }
  }
  return ends;
}

[[noreturn]] void become(const Command& command, const std::array<int, 3>& descriptors) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Moved out of the way first: a source may be one of 0, 1, 2.
  std::array<int, 3> high{};
  for (size_t i = 0; i < 3; ++i)
    high.at(i) = descriptors.at(i) < 0 ? -1 : ::fcntl(descriptors.at(i), F_DUPFD_CLOEXEC, 10);
  if (command.new_terminal_session) {
    ::setsid();
    ::ioctl(high[0], TIOCSCTTY, 0);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (command.before_exec && !command.before_exec()) ::_exit(127);
  if (!command.cwd.empty() && ::chdir(command.cwd.c_str()) != 0) ::_exit(127);
  for (const auto& [name, value] : command.env) {
    if (value) {
      ::setenv(name.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }
  std::vector<char*> argv;
  for (const std::string& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  for (int i = 0; i < 3; ++i) {
    if (high.at(static_cast<size_t>(i)) < 0) {
      ::close(i);
    } else {
      ::dup2(high.at(static_cast<size_t>(i)), i);
    }
  }
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

// Reads what is there. False at the end.
bool drain(base::Fd& fd, std::string& into) {
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got > 0) {
      into.append(buffer.data(), static_cast<size_t>(got));
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else if (got < 0 && errno == EAGAIN) {
      return true;
    } else {
      fd.reset();
      return false;
    }
  }
}

int left(Clock::time_point end) {
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return rest < 0 ? 0 : static_cast<int>(rest) + 1;
}

}  // namespace

Process::Process(const Command& command) : input_(command.in.text) {
  ::signal(SIGPIPE, SIG_IGN);
  Ends in = make_ends(command.in, true);
  Ends out = make_ends(command.out, false);
  Ends err = make_ends(command.err, false);
  pid_ = ::fork();
  if (pid_ < 0) std::abort();
  if (pid_ == 0) become(command, {in.theirs, out.theirs, err.theirs});
  in_ = std::move(in.ours);
  out_ = std::move(out.ours);
  err_ = std::move(err.ours);
  if (input_.empty()) in_.reset();
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::move(other.input_)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      output_(std::move(other.output_)) {}

Process::~Process() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

std::optional<std::string> Process::read_line(std::chrono::seconds patience) {
  const auto end = Clock::now() + patience;
  for (bool more = true;;) {
    if (const size_t newline = output_.out.find('\n'); newline != std::string::npos) {
      std::string line = output_.out.substr(0, newline);
      output_.out.erase(0, newline + 1);
      return line;
    }
    if (!more) return std::nullopt;
    pollfd wanted{.fd = out_.get(), .events = POLLIN, .revents = 0};
    // The last line and the end may come together.
    more = out_ && ::poll(&wanted, 1, left(end)) > 0 && drain(out_, output_.out);
  }
}

Output Process::wait(std::chrono::seconds patience) {
  const auto end = Clock::now() + patience;
  while (out_ || err_ || in_) {
    std::array<pollfd, 3> wanted{{{.fd = out_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = err_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = in_.get(), .events = POLLOUT, .revents = 0}}};
    if (::poll(wanted.data(), wanted.size(), left(end)) == 0) {
      output_.timed_out = true;
      this->signal(SIGKILL);
      break;
    }
    if (out_ && wanted[0].revents != 0) drain(out_, output_.out);
    if (err_ && wanted[1].revents != 0) drain(err_, output_.err);
    if (in_ && wanted[2].revents != 0) {
      const ssize_t wrote = ::write(in_.get(), input_.data(), input_.size());
      if (wrote > 0) input_.erase(0, static_cast<size_t>(wrote));
      if (input_.empty() || (wrote < 0 && errno != EAGAIN && errno != EINTR)) in_.reset();
    }
  }
  base::Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd gone{.fd = handle.get(), .events = POLLIN, .revents = 0};
  if (::poll(&gone, 1, left(end)) == 0) {
    output_.timed_out = true;
    this->signal(SIGKILL);
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  output_.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return std::move(output_);
}

Output run(const Command& command, std::chrono::seconds patience) {
  return Process(command).wait(patience);
}

std::string must_run(const Command& command) {
  Output output = run(command);
  if (output.code != 0) {
    std::fprintf(stderr, "%s ended with %d\n%s%s", command.argv[0].c_str(), output.code, output.out.c_str(),
                 output.err.c_str());
    std::abort();
  }
  return output.out;
}

}  // namespace belljar::testing
