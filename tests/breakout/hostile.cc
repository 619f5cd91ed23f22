#include "breakout/hostile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace hostile {
namespace {

std::vector<std::string> facts;

struct Group {
  const char* name;
  std::span<const Attempt> (*attempts)();
};

constexpr Group kGroups[] = {{"set-id", set_id_attempts},        {"files", file_attempts},
                             {"read-only", read_only_attempts},  {"processes", process_attempts},
                             {"kernel", kernel_attempts},        {"network", network_attempts},
                             {"exhaustion", exhaustion_attempts}};

constexpr unsigned kPatience = 60;  // seconds

// Those of `only=NAME,NAME`, or all; but none of `skip=NAME,NAME`.
bool is_wanted(const std::string& name) {
  const std::string only = fact("only");
  if (("," + fact("skip") + ",").find("," + name + ",") != std::string::npos) return false;
  return only.empty() || ("," + only + ",").find("," + name + ",") != std::string::npos;
}

// In a child, so that one attempt cannot spoil the next, and in a folder of its own.
bool try_one(const Attempt& attempt) {
  const std::string folder = "attempt-" + fact("marked") + attempt.name;
  ::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid < 0) return false;
  if (pid == 0) {
    ::alarm(kPatience);
    if (::mkdir(folder.c_str(), 0755) != 0 || ::chdir(folder.c_str()) != 0) {
      std::printf("BROKEN %s: no folder: %s\n", attempt.name, strerrorname_np(errno));
      ::fflush(stdout);
      ::_exit(2);
    }
    const Outcome outcome = attempt.run();
    std::printf("%s %s: %s\n", outcome.through ? "THROUGH" : "held", attempt.name, outcome.detail.c_str());
    ::fflush(stdout);
    ::_exit(outcome.through ? 1 : 0);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) std::printf("BROKEN %s: signal %d\n", attempt.name, WTERMSIG(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string fact(std::string_view name) {
  for (const std::string& each : facts) {
    if (each.starts_with(name) && each.size() > name.size() && each[name.size()] == '=') {
      return each.substr(name.size() + 1);
    }
  }
  return {};
}

std::string read_start(const char* path) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  std::array<char, 256> bytes{};
  const ssize_t size = ::read(fd, bytes.data(), bytes.size());
  ::close(fd);
  return {bytes.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

bool put_file(const char* path, std::string_view text) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
  if (fd < 0) return false;
  const bool good = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return good;
}

int shell(const std::string& script) {
  const int status = std::system(("exec >&2; " + script).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(int count, char** words) {
  if (count < 2) return 2;
  const std::string_view wanted = words[1];
  for (int i = 2; i < count; ++i) facts.emplace_back(words[i]);
  if (wanted == "who") {
    std::printf("%u %u\n", ::getuid(), ::geteuid());
    return 0;
  }
  for (const Group& group : kGroups) {
    if (wanted != group.name) continue;
    size_t tried = 0;
    size_t stopped = 0;
    for (const Attempt& attempt : group.attempts()) {
      if (!is_wanted(attempt.name)) continue;
      ++tried;
      stopped += try_one(attempt) ? 1U : 0U;
    }
    std::printf("%zu of %zu attempts were stopped\n", stopped, tried);
    return stopped == tried && tried > 0 ? 0 : 1;
  }
  return 2;
}

}  // namespace hostile

int main(int count, char** words) {
  return hostile::run(count, words);
}
