#include "support.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace bench {

double now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

pid_t start(const std::vector<std::string>& argv) {
  static posix_spawn_file_actions_t quiet;
  static const bool ready = [] {
    ::posix_spawn_file_actions_init(&quiet);
    for (int fd = 0; fd < 3; ++fd) ::posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_RDWR, 0);
    return true;
  }();
  (void)ready;
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t pid = -1;
  return ::posix_spawnp(&pid, words[0], &quiet, nullptr, words.data(), environ) == 0 ? pid : -1;
}

int wait_for(pid_t pid) {
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

int launch(const std::vector<std::string>& argv) {
  return wait_for(start(argv));
}

double quantile(std::vector<double> values, double which) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(which * static_cast<double>(values.size() - 1) + 0.5)];
}

std::vector<std::string> bubblewrap(const std::string& folder, const std::vector<std::string>& command) {
  const char* home = std::getenv("HOME");
  std::vector<std::string> argv{"bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind",
                                "/usr",  "/usr"};
  for (const char* name : {"bin", "sbin", "lib", "lib64"}) {
    const std::string path = std::string("/") + name;
    std::error_code error;
    if (std::filesystem::is_symlink(path, error)) {
      argv.insert(argv.end(), {"--symlink", std::string("usr/") + name, path});
    } else if (std::filesystem::exists(path, error)) {
      argv.insert(argv.end(), {"--ro-bind", path, path});
    }
  }
  argv.insert(argv.end(),
              {"--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run",
               "--tmpfs", home != nullptr ? home : "/root", "--bind", folder, folder, "--chdir", folder, "--"});
  argv.insert(argv.end(), command.begin(), command.end());
  return argv;
}

std::string fault_of(const std::vector<std::string>& argv) {
  const int status = launch(argv);
  if (status == 0) return {};
  const bool there = ::system(("command -v " + argv[0] + " >/dev/null 2>&1").c_str()) == 0;
  return there ? "does not work here (status " + std::to_string(status) + ")" : "not installed";
}

std::string beside(const std::string& name) {
  return std::filesystem::canonical("/proc/self/exe").parent_path() / name;
}

std::string machine_json() {
  utsname system{};
  ::uname(&system);
  return "\"kernel\":\"" + std::string(system.release) +
         "\",\"cores\":" + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)) + ",\"uid\":" + std::to_string(::geteuid());
}

Folder::Folder() : path_("/var/tmp/belljar-bench.XXXXXX") {
  if (::mkdtemp(path_.data()) != nullptr && ::chdir(path_.c_str()) == 0) return;
  std::perror(path_.c_str());
  std::exit(1);
}

Folder::~Folder() {
  std::error_code error;
  (void)!::chdir("/");
  std::filesystem::remove_all(path_, error);
}

}  // namespace bench
