// Using up what a guest is given: it must end inside, with the error that belongs to it.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "breakout/hostile.h"

namespace hostile {
namespace {

// Bytes that fit into a file at `path` before the error; the limits of the test's policy are far below `kMost`.
constexpr size_t kMost = size_t{256} << 20U;

Outcome fill(const char* path, int wanted) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return through(std::string("could not begin: ") + strerrorname_np(errno));
  ::signal(SIGXFSZ, SIG_IGN);  // so that the error tells
  const std::vector<char> block(size_t{1} << 20U, 'x');
  size_t total = 0;
  int code = 0;
  while (total < kMost && code == 0) {
    const ssize_t size = ::write(fd, block.data(), block.size());
    if (size < 0) code = errno;
    if (size > 0) total += static_cast<size_t>(size);
  }
  ::close(fd);
  ::unlink(path);
  const std::string told = std::to_string(total >> 20U) + " MiB, then " + strerrorname_np(code);
  return code == wanted ? held(told) : through(told);
}

Outcome many_files(const char* folder) {
  size_t made = 0;
  while (made < 100000) {
    const std::string path = std::string(folder) + "/inode-" + std::to_string(made);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) break;
    ::close(fd);
    ++made;
  }
  const int code = errno;
  for (size_t i = 0; i < made; ++i) ::unlink((std::string(folder) + "/inode-" + std::to_string(i)).c_str());
  const std::string told = std::to_string(made) + " files, then " + strerrorname_np(code);
  return made < 100000 && code == ENOSPC ? held(told) : through(told);
}

// Forks until the kernel says no; every child waits to be killed.
Outcome many_processes() {
  std::vector<pid_t> children;
  int code = 0;
  while (children.size() < 5000 && code == 0) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (;;) ::pause();
    }
    if (pid < 0) {
      code = errno;
    } else {
      children.push_back(pid);
    }
  }
  for (const pid_t pid : children) ::kill(pid, SIGKILL);
  for (const pid_t pid : children) ::waitpid(pid, nullptr, 0);
  const std::string told = std::to_string(children.size()) + " processes, then " + strerrorname_np(code);
  return code == EAGAIN ? held(told) : through(told);
}

// Each process forks as often as it can; the kernel's answer ends it, and nobody waits for anybody.
Outcome bomb() {
  const pid_t leader = ::fork();
  if (leader == 0) {
    ::setpgid(0, 0);
    ::alarm(2);
    for (;;) {
      if (::fork() < 0) ::usleep(1000);
    }
  }
  ::setpgid(leader, leader);
  ::sleep(1);
  // Later generations have no alarm (alarm(2) is not inherited): the group ends them, over and over.
  for (int i = 0; i < 200 && ::kill(-leader, SIGKILL) == 0; ++i) ::usleep(5000);
  ::waitpid(leader, nullptr, 0);
  const pid_t after = ::fork();
  if (after == 0) ::_exit(0);
  if (after < 0) return through("nothing can start any more");
  ::waitpid(after, nullptr, 0);
  return held("over, and processes start again");
}

// Orphans that init has to collect, more than may live at once.
Outcome orphans() {
  for (int i = 0; i < 2000; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      if (::fork() == 0) ::_exit(7);
      ::_exit(0);
    }
    if (pid < 0) {
      // Init may be behind for a moment.
      ::usleep(1000);
      continue;
    }
    ::waitpid(pid, nullptr, 0);
  }
  const pid_t after = ::fork();
  if (after == 0) ::_exit(0);
  if (after < 0) return through("init does not collect them");
  ::waitpid(after, nullptr, 0);
  return held("all collected");
}

// Children that nobody waits for stay until their parent ends, and count.
Outcome zombies() {
  size_t count = 0;
  int code = 0;
  while (count < 5000 && code == 0) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(0);
    if (pid < 0) {
      code = errno;
    } else {
      ++count;
    }
  }
  const std::string told = std::to_string(count) + " zombies, then " + strerrorname_np(code);
  return code == EAGAIN ? held(told) : through(told);
}

Outcome many_descriptors() {
  size_t count = 0;
  while (count < 100000 && ::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) ++count;
  const int code = errno;
  const std::string told = std::to_string(count) + " descriptors, then " + strerrorname_np(code);
  return code == EMFILE ? held(told) : through(told);
}

const Attempt kAttempts[] = {
    {"fill-temporary", [] { return fill("/tmp/fill", ENOSPC); }},
    {"fill-shared-memory", [] { return fill("/dev/shm/fill", ENOSPC); }},
    {"fill-run", [] { return fill("/run/fill", ENOSPC); }},
    {"fill-variable-temporary", [] { return fill("/var/tmp/fill", ENOSPC); }},
    {"fill-home", [] { return fill((std::string(std::getenv("HOME")) + "/fill").c_str(), ENOSPC); }},
    {"files-in-temporary", [] { return many_files("/tmp"); }},
    {"files-in-shared-memory", [] { return many_files("/dev/shm"); }},
    {"file-size", [] { return fill("large", EFBIG); }},
    {"processes", many_processes},
    {"zombies", zombies},
    {"orphans", orphans},
    {"bomb", bomb},
    {"descriptors", many_descriptors},
};

}  // namespace

std::span<const Attempt> exhaustion_attempts() {
  return kAttempts;
}

}  // namespace hostile
