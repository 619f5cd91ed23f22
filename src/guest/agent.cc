#include "guest/agent.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <vector>

#include "base/reap.h"
#include "base/text.h"
#include "linux/clone.h"

namespace belljar::guest {
namespace {

struct Start {
  // In the order to be tried: one, unless a bare name is looked for in PATH. Ends with a null.
  const char* const* programs = nullptr;
  char* const* arguments = nullptr;  // after one spare slot in front, for the shell of a script without `#!`
  char** shell_arguments = nullptr;  // the same with the spare slot
  char* const* environment = nullptr;
  int terminal = -1;
  bool terminal_stderr = false;
  mode_t umask = 022;
  uint32_t closed = 0;
  int error = 0;
};

// In the child, which shares init's memory until it executes.
int enter(void* argument) {
  auto* start = static_cast<Start*>(argument);
  if (start->terminal >= 0) {
    ::setpgid(0, 0);
    // SIGTTOU is blocked here, so a background process group may take the terminal (tcsetpgrp(3)).
    ::tcsetpgrp(start->terminal, ::getpid());
    ::dup2(start->terminal, STDIN_FILENO);
    ::dup2(start->terminal, STDOUT_FILENO);
    if (start->terminal_stderr) ::dup2(start->terminal, STDERR_FILENO);
  } else {
    ::setsid();
  }
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if ((start->closed & (1U << static_cast<unsigned>(fd))) != 0) ::close(fd);
  }
  ::umask(start->umask);
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // The control socket and the terminal's ends are init's own: the command gets 0, 1 and 2 and nothing more.
  if (::close_range(STDERR_FILENO + 1, UINT_MAX, 0) != 0) {
    start->error = errno;
    return 127;
  }
  int error = ENOENT;
  for (const char* const* program = start->programs; *program != nullptr; ++program) {
    ::execve(*program, start->arguments, start->environment);
    if (errno == ENOEXEC) {
      // As execvp(3) and every shell do for a script that names no interpreter.
      start->shell_arguments[1] = const_cast<char*>(*program);
      start->error = ENOEXEC;
      ::execve("/bin/sh", start->shell_arguments, start->environment);
      return 127;
    }
    // One that is there and cannot be executed is told of, unless another can (execvp(3)).
    if (error == ENOENT && errno != ENOTDIR) error = errno;
  }
  start->error = error;
  return 127;
}

std::vector<char*> pointers(const std::vector<std::string_view>& words, size_t spare) {
  std::vector<char*> out(spare, nullptr);
  out.reserve(spare + words.size() + 1);
  for (const std::string_view word : words) out.push_back(const_cast<char*>(word.data()));
  out.push_back(nullptr);
  return out;
}

// Absolute, or below the folder it starts in; a bare name in each folder of the guest's PATH.
std::vector<std::string> candidates(const Config& config) {
  std::vector<std::string> out;
  if (config.program.find('/') != std::string_view::npos) {
    out.emplace_back(config.program);
    return out;
  }
  constexpr std::string_view kName = "PATH=";
  for (const std::string_view variable : config.environment) {
    if (!variable.starts_with(kName)) continue;
    for (const std::string_view folder : base::split(variable.substr(kName.size()), ':')) {
      // An empty or relative one is the folder that the agent may write.
      if (folder.starts_with('/')) out.push_back(std::string(folder) + "/" + std::string(config.program));
    }
  }
  return out;
}

}  // namespace

pid_t start_agent(const Config& config, int terminal) {
  std::vector<char*> arguments = pointers(config.arguments, 1);
  std::vector<char*> environment = pointers(config.environment, 0);
  Start start;
  const std::vector<std::string> names = candidates(config);
  std::vector<const char*> programs;
  for (const std::string& name : names) programs.push_back(name.c_str());
  programs.push_back(nullptr);
  start.programs = programs.data();
  start.arguments = arguments.data() + 1;
  std::vector<char*> shell_arguments = arguments;
  std::array<char, 8> shell{"sh"};
  shell_arguments[0] = shell.data();
  start.shell_arguments = shell_arguments.data();
  start.environment = environment.data();
  start.terminal = terminal;
  start.terminal_stderr = config.terminal_stderr;
  start.umask = config.umask;
  start.closed = config.closed;
  alignas(16) std::array<char, 16384> stack;
  const int64_t pid = linux::clone_sharing_memory(CLONE_VFORK, nullptr, -1, stack.data(), stack.size(), &enter, &start);
  if (pid < 0) return static_cast<pid_t>(pid);
  if (start.error != 0 && start.error != ENOEXEC) {
    (void)base::reap(static_cast<pid_t>(pid));
    return -start.error;
  }
  return static_cast<pid_t>(pid);
}

}  // namespace belljar::guest
