#include "tiers/docker/image/fetch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>
#include <vector>

#include "base/child_group.h"
#include "base/fd.h"

namespace belljar::tiers::docker::image {
namespace {

constexpr std::string_view kFetching = "fetch the packages";
constexpr int kExecFailed = 127;

[[noreturn]] void become_npm(const std::vector<char*>& words, const std::string& folder, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  // A group of its own, to be ended as a whole. What it prints is for the person who waits.
  if (::getppid() != parent || ::setpgid(0, 0) != 0 || ::chdir(folder.c_str()) != 0 || null < 0 ||
      ::dup2(null, STDIN_FILENO) < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
      ::syscall(SYS_close_range, STDERR_FILENO + 1, UINT_MAX, 0) != 0) {
    ::_exit(kExecFailed);
  }
  ::execvp(words[0], words.data());
  ::_exit(kExecFailed);
}

// Its exit code; 128 and more: by a signal.
base::Result<int> run_npm(std::vector<std::string>& arguments, const std::string& folder,
                          const base::Deadline& deadline) {
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return base::system_error(kFetching, "", errno);
  if (pid == 0) become_npm(words, folder, parent);
  base::ChildGroup npm(pid);
  const base::Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return base::system_error(kFetching, "", errno);
  pollfd ended{pidfd.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&ended, 1, deadline.poll_timeout());
  } while (ready < 0 && errno == EINTR);
  if (ready < 0) return base::system_error(kFetching, "", errno);
  if (ready == 0) return base::system_error(kFetching, "npm", ETIMEDOUT, "give it more by --timeout");
  npm.kill();  // what it has left of its group
  return npm.wait();
}

}  // namespace

base::Status fetch_packages(const Lock& lock, const std::string& folder, const base::Deadline& deadline) {
  std::vector<std::string> arguments{"npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", folder, "--"};
  for (const Package& package : lock.packages) {
    const std::string word = package.name + "@" + package.version;
    if (std::ranges::find(arguments, word) == arguments.end()) arguments.push_back(word);
  }
  BELLJAR_ASSIGN(const int code, run_npm(arguments, folder, deadline));
  if (code == kExecFailed) {
    return base::refuse(kFetching, "npm", "it could not be started", "install npm, or name a folder by --packages");
  }
  if (code != 0) {
    return base::refuse(kFetching, "npm", "it ended with " + std::to_string(code),
                        "fetch them elsewhere and name their folder by --packages");
  }
  if (deadline.passed()) return base::system_error(kFetching, "npm", ETIMEDOUT, "give it more by --timeout");
  return {};
}

}  // namespace belljar::tiers::docker::image
