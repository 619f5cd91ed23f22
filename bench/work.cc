// What work costs inside against outside: the same commands in the same folder, in turn, timed by themselves, so that
// the launch does not count (bench_launch tells it). Minima and medians of the ratio are what to look at: whatever else
// the machine does falls on both.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support.h"

namespace {

struct Work {
  const char* name;
  const char* before;  // not timed
  const char* script;  // timed; empty: spawns
  int spawns = 0;
};

constexpr std::array<Work, 4> kWorks = {{
    {"git status", "true", "cd tree && git status --porcelain >/dev/null"},
    {"untar", "rm -rf out; mkdir out", "tar -xf tree.tar -C out"},
    {"C++ build", "rm -f *.o", "for f in one two three; do g++ -O1 -c $f.cc -o $f.o || exit 1; done"},
    {"10,000 spawns", "true", "", 10'000},
}};

bool shell(const char* script) {
  return std::system(script) == 0;
}

bool spawn_all(int count) {
  std::array<char*, 2> argv{const_cast<char*>("/bin/true"), nullptr};
  for (int i = 0; i < count; ++i) {
    pid_t pid = -1;
    int status = 0;
    if (::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return false;
    if (::waitpid(pid, &status, 0) != pid || status != 0) return false;
  }
  return true;
}

// Does the work and leaves the milliseconds in a file.
int do_work(const Work& work) {
  if (!shell(work.before)) return 1;
  const double start = bench::now_ms();
  if (!(work.spawns > 0 ? spawn_all(work.spawns) : shell(work.script))) return 1;
  std::ofstream("took") << bench::now_ms() - start << "\n";
  return 0;
}

double took() {
  double out = -1;
  std::ifstream("took") >> out;
  std::filesystem::remove("took");
  return out;
}

// 20,000 files of a few lines in a repository, the same as an archive, three sources to compile.
bool prepare() {
  for (int folder = 0; folder < 200; ++folder) {
    const std::string path = "tree/" + std::to_string(folder);
    std::filesystem::create_directories(path);
    for (int file = 0; file < 100; ++file) {
      std::ofstream(path + "/" + std::to_string(file) + ".txt") << "file " << file << "\nof folder " << folder << "\n";
    }
  }
  for (const char* name : {"one", "two", "three"}) {
    std::ofstream(std::string(name) + ".cc")
        << "#include <map>\n#include <string>\n#include <vector>\nstd::map<std::string, std::vector<int>> " << name
        << "(const std::string& k) { return {{k, {1, 2, 3}}}; }\n";
  }
  return shell(
      "tar -cf tree.tar tree && cd tree && git init -q . && git add . && "
      "git -c user.name=b -c user.email=b@b.test commit -qm all && git status >/dev/null");
}

}  // namespace

// usage: bench_work [ROUNDS [BELLJAR]]
int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "--work") == 0)
    return do_work(kWorks.at(static_cast<size_t>(std::atoi(argv[2]))));
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const std::string belljar = argc > 2 ? argv[2] : bench::beside("belljar");
  const bench::Folder folder;
  if (!prepare()) return 1;
  std::filesystem::copy_file("/proc/self/exe", "worker");
  std::printf("%-14s %10s %10s %10s %10s %8s %8s\n", "ms", "out min", "in min", "out median", "in median", "min",
              "median");
  std::string json = "{\"bench\":\"work\",\"unit\":\"ms\"," + bench::machine_json();
  for (size_t i = 0; i < kWorks.size(); ++i) {
    const std::string number = std::to_string(i);
    const std::array<std::vector<std::string>, 2> argvs{
        {{"./worker", "--work", number}, {belljar, "run", "--", "./worker", "--work", number}}};
    std::array<std::vector<double>, 2> times;
    for (int round = -1; round < rounds; ++round) {
      for (size_t side = 0; side < 2; ++side) {
        const size_t which = (side + static_cast<size_t>(round + 1)) % 2;
        if (bench::launch(argvs.at(which)) != 0) {
          std::fprintf(stderr, "bench_work: '%s' failed %s\n", kWorks.at(i).name, which == 0 ? "outside" : "inside");
          return 1;
        }
        const double time = took();
        if (round >= 0) times.at(which).push_back(time);
      }
    }
    const auto at = [&](size_t side, double which) { return bench::quantile(times.at(side), which); };
    std::printf("%-14s %10.1f %10.1f %10.1f %10.1f %8.3f %8.3f\n", kWorks.at(i).name, at(0, 0), at(1, 0), at(0, 0.5),
                at(1, 0.5), at(1, 0) / at(0, 0), at(1, 0.5) / at(0, 0.5));
    std::fflush(stdout);
    json += std::string(",\"") + kWorks.at(i).name + "\":{\"min_ratio\":" + std::to_string(at(1, 0) / at(0, 0)) +
            ",\"median_ratio\":" + std::to_string(at(1, 0.5) / at(0, 0.5)) + "}";
  }
  std::printf("%s}\n", json.c_str());
  return 0;
}
