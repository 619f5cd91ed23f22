#include "tiers/none/command.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <memory>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/io.h"
#include "base/pair.h"
#include "base/text.h"
#include "linux/rlimits.h"

namespace belljar::tiers::none {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

std::vector<linux::ResourceLimit> limits_of(const plan::ResourceLimits& limits) {
  std::vector<linux::ResourceLimit> out;
  if (limits.open_files != 0) out.push_back({RLIMIT_NOFILE, limits.open_files});
  if (limits.file_bytes) out.push_back({RLIMIT_FSIZE, *limits.file_bytes});
  return out;
}

// What the child does between fork(2) and execve(2).
struct Child {
  const char* program;
  const char* folder;
  char* const* arguments;
  char* const* environment;
  std::vector<linux::ResourceLimit> limits;
  uint32_t closed;
  int go;  // its end is the sign to go on

  // An errno. Does not return when the command was executed.
  [[nodiscard]] int run() const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    char none = 0;
    while (::read(go, &none, 1) < 0 && errno == EINTR) {
    }
    sigset_t nothing;
    ::sigemptyset(&nothing);
    ::sigprocmask(SIG_SETMASK, &nothing, nullptr);
    if (::chdir(folder) != 0) return errno;
    if (const int error = linux::set_limits(limits); error != 0) return error;
    for (unsigned fd = 0; fd < 3; ++fd) {
      if ((closed & (1U << fd)) != 0) ::close(static_cast<int>(fd));
    }
    if (::close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC) != 0) return errno;
    ::execve(program, arguments, environment);
    return errno;
  }
};

// The parent that /proc/PID/stat names, or 0: PID (NAME) STATE PPID …, where the name may hold anything
// (proc_pid_stat(5)).
pid_t parent_in(std::string_view stat) {
  const size_t at = stat.rfind(") ");
  if (at == std::string_view::npos || at + 4 > stat.size()) return 0;
  const std::string_view rest = stat.substr(at + 4);
  uint64_t parent = 0;
  return base::parse_uint(rest.substr(0, rest.find(' ')), parent) ? static_cast<pid_t>(parent) : 0;
}

// Their pids are nobody else's until they are collected.
std::vector<pid_t> own_children() {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), &::closedir);
  while (proc) {
    const dirent* entry = ::readdir(proc.get());
    if (entry == nullptr) break;
    uint64_t pid = 0;
    if (!base::parse_uint(static_cast<const char*>(entry->d_name), pid)) continue;
    const std::string stat = base::read_file("/proc/" + std::to_string(pid) + "/stat").value_or("");
    if (parent_in(stat) == ::getpid()) out.push_back(static_cast<pid_t>(pid));
  }
  return out;
}

std::string name_of(pid_t pid) {
  std::string name = base::read_file("/proc/" + std::to_string(pid) + "/comm").value_or("");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return "process " + std::to_string(pid) + " (" + name + ")";
}

}  // namespace

Command::Command(Command&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      exec_error_(other.exec_error_),
      status_(other.status_),
      reaper_(std::exchange(other.reaper_, false)) {}

Command::~Command() {
  if (!reaper_) return;
  (void)end_all(std::chrono::seconds(2));
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

base::Result<Command> Command::start(const plan::Plan& plan, uint32_t closed, const linux::Cgroup& group) {
  std::vector<std::string> words = plan.command;
  std::vector<std::string> variables;
  for (const plan::EnvVar& variable : plan.env) variables.push_back(variable.name + "=" + variable.value);
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> environment = pointers(variables);
  base::Pipe go;
  base::Pipe failed;
  BELLJAR_TRY(go.open());
  BELLJAR_TRY(failed.open());
  Command out;
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return base::system_error("become the parent of orphans", "", errno);
  out.reaper_ = true;
  const Child child{.program = plan.program.c_str(),
                    .folder = plan.chdir.c_str(),
                    .arguments = arguments.data(),
                    .environment = environment.data(),
                    .limits = limits_of(plan.limits),
                    .closed = closed,
                    .go = go.out.get()};
  out.pid_ = ::fork();
  if (out.pid_ < 0) return base::system_error("start a process", "", errno);
  if (out.pid_ == 0) {
    go.in.reset();
    const int error = child.run();
    (void)!::write(failed.in.get(), &error, sizeof error);
    ::_exit(127);
  }
  failed.in.reset();
  out.pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, out.pid_, 0)));
  if (!out.pidfd_) return base::system_error("pidfd_open", "", errno);
  BELLJAR_TRY(group.enter(out.pid_));
  go.in.reset();
  if (!base::read_exact(failed.out.get(), &out.exec_error_, sizeof out.exec_error_)) out.exec_error_ = 0;
  return out;
}

int Command::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return status_;
    if (pid == pid_) status_ = status;
  }
}

void Command::signal(int number) const {
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0);
}

std::vector<std::string> Command::end_all(std::chrono::milliseconds patience) {
  const base::Deadline deadline = base::Deadline::after(patience);
  std::vector<std::string> left;
  for (;;) {
    (void)reap();
    const std::vector<pid_t> children = own_children();
    if (children.empty()) return {};
    for (const pid_t pid : children) ::kill(pid, SIGKILL);
    if (deadline.passed()) {
      for (const pid_t pid : children) left.push_back(name_of(pid));
      return left;
    }
    ::poll(nullptr, 0, 2);
  }
}

}  // namespace belljar::tiers::none
