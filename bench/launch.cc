// How long a launch takes, end to end, as a shell sees it: from the spawn of the launcher to its end, for `/bin/true`.
// The ways are interleaved round by round, so that whatever the machine does meanwhile falls on all of them alike;
// medians and their ratios are what travels to other machines.
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace {

struct Way {
  std::string name;
  std::vector<std::string> argv;
  int every = 1;                // takes part in one of so many rounds: the slow ones would make the run last an hour
  std::string missing{};        // why it takes no part, if it does not
  std::vector<double> times{};  // milliseconds
};

double now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Starts argv with its output in /dev/null and waits. posix_spawn is a vfork in glibc, so the parent's size adds
// nothing. Exit status, or -1.
int launch(const std::vector<std::string>& argv) {
  static posix_spawn_file_actions_t quiet;
  static const bool ready = [] {
    ::posix_spawn_file_actions_init(&quiet);
    for (int fd = 0; fd < 3; ++fd) ::posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_RDWR, 0);
    return true;
  }();
  (void)ready;
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t pid = -1;
  if (::posix_spawnp(&pid, words[0], &quiet, nullptr, words.data(), environ) != 0) return -1;
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

double quantile(std::vector<double> values, double which) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(which * static_cast<double>(values.size() - 1) + 0.5)];
}

// Every namespace, an own network, the system read-only, a home of its own, the work folder: what a careful person
// writes. No proxy, no system-call filter, no check from the inside: those bwrap does not bring.
std::vector<std::string> bubblewrap(const std::string& folder, const std::string& home) {
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
              {"--ro-bind", "/etc",    "/etc", "--proc", "/proc", "--dev", "/dev",    "--tmpfs", "/tmp", "--tmpfs",
               "/run",      "--tmpfs", home,   "--bind", folder,  folder,  "--chdir", folder,    "--",   "/bin/true"});
  return argv;
}

std::vector<Way> ways(const std::string& belljar, const std::string& folder) {
  const char* home = std::getenv("HOME");
  const char* image = std::getenv("BELLJAR_BENCH_IMAGE");
  const std::string name = image != nullptr ? image : "debian:12";
  return {{"plain exec", {"/bin/true"}},
          {"bwrap", bubblewrap(folder, home != nullptr ? home : "/root")},
          {"belljar run", {belljar, "run", "--", "/bin/true"}},
          {"bare launcher", {std::filesystem::path(belljar).parent_path() / "bare-launcher", "/bin/true"}},
          {"docker run",
           {"docker", "run", "--rm", "--network", "none", "-v", folder + ":" + folder, "-w", folder, name, "/bin/true"},
           20},
          {"srt", {"srt", "true"}, 20}};
}

// One launch of each, not counted: it warms the caches and tells who is there.
void try_out(std::vector<Way>& all) {
  for (Way& way : all) {
    const int status = launch(way.argv);
    if (status == 0) continue;
    const bool there = ::system(("command -v " + way.argv[0] + " >/dev/null 2>&1").c_str()) == 0;
    way.missing = there ? "does not work here (status " + std::to_string(status) + ")" : "not installed";
  }
}

void print_table(const std::vector<Way>& all) {
  std::printf("%-13s %8s %8s %8s %7s %9s %9s\n", "", "median", "p10", "p90", "rounds", "to plain", "to bwrap");
  const auto ratio = [](const Way& way, const Way& base) {
    if (!base.missing.empty()) return std::string("-");
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%.2f", quantile(way.times, 0.5) / quantile(base.times, 0.5));
    return std::string(text.data());
  };
  for (const Way& way : all) {
    if (!way.missing.empty()) {
      std::printf("%-13s %s\n", way.name.c_str(), way.missing.c_str());
      continue;
    }
    std::printf("%-13s %8.2f %8.2f %8.2f %7zu %9s %9s\n", way.name.c_str(), quantile(way.times, 0.5),
                quantile(way.times, 0.1), quantile(way.times, 0.9), way.times.size(), ratio(way, all[0]).c_str(),
                ratio(way, all[1]).c_str());
  }
}

void print_json(const std::vector<Way>& all) {
  utsname system{};
  ::uname(&system);
  std::printf("{\"bench\":\"launch\",\"unit\":\"ms\",\"kernel\":\"%s\",\"cores\":%ld,\"uid\":%u", system.release,
              ::sysconf(_SC_NPROCESSORS_ONLN), ::geteuid());
  for (const Way& way : all) {
    if (!way.missing.empty()) {
      std::printf(",\"%s\":null", way.name.c_str());
    } else {
      std::printf(",\"%s\":{\"median\":%.3f,\"p10\":%.3f,\"p90\":%.3f,\"rounds\":%zu}", way.name.c_str(),
                  quantile(way.times, 0.5), quantile(way.times, 0.1), quantile(way.times, 0.9), way.times.size());
    }
  }
  std::printf("}\n");
}

int fail(const char* what) {
  std::perror(what);
  return 1;
}

}  // namespace

// usage: bench_launch [ROUNDS [BELLJAR]]
int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  const std::string belljar =
      argc > 2 ? argv[2] : std::filesystem::canonical("/proc/self/exe").parent_path() / "belljar";
  std::string folder = "/var/tmp/belljar-bench.XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr || ::chdir(folder.c_str()) != 0) return fail(folder.c_str());
  std::vector<Way> all = ways(belljar, folder);
  try_out(all);
  int failed = 0;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < all.size(); ++i) {
      Way& way = all[(i + static_cast<size_t>(round)) % all.size()];
      if (!way.missing.empty() || round % way.every != 0) continue;
      const double start = now_ms();
      const int status = launch(way.argv);
      way.times.push_back(now_ms() - start);
      failed += status == 0 ? 0 : 1;
    }
  }
  ::rmdir(folder.c_str());
  print_table(all);
  print_json(all);
  if (failed != 0 || !all[2].missing.empty()) {
    std::fprintf(stderr, "bench_launch: %d launches failed%s\n", failed,
                 all[2].missing.empty() ? "" : ", belljar's among them");
    return 1;
  }
  return 0;
}
