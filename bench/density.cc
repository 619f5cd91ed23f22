// What an idle sandbox costs in memory while its command does nothing: the proportional set size (proc_pid_smaps(5)) of
// every process that was started for it, the command itself left out, for one sandbox and for many at once.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support.h"

namespace {

struct Way {
  std::string name;
  std::vector<std::string> argv;
  std::vector<std::string> trial;  // the same with a command that ends
};

// A command that is told from the helpers by its name.
constexpr const char* kCommand = "sleep";

std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    std::string text;
    if (pid <= 0 || !std::getline(std::ifstream(entry.path() / "stat"), text)) continue;
    // PID (NAME) STATE PPID …, and the name may hold anything.
    if (const size_t at = text.rfind(')'); at != std::string::npos && at + 4 < text.size()) {
      out[pid] = static_cast<pid_t>(std::atoi(text.c_str() + at + 4));
    }
  }
  return out;
}

std::string name_of(pid_t pid) {
  std::string out;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), out);
  return out;
}

// KiB, or -1 when it cannot be read.
long pss_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string word; file >> word;) {
    long size = 0;
    if (word == "Pss:" && file >> size) return size;
  }
  return -1;
}

struct Sum {
  long kib = 0;
  size_t helpers = 0;
  size_t commands = 0;
  bool readable = true;
};

Sum sum_below(const std::vector<pid_t>& roots) {
  const auto all = parents();
  const auto is_ours = [&](pid_t pid) {
    for (auto at = all.find(pid); at != all.end(); at = all.find(at->second)) {
      if (std::ranges::find(roots, at->first) != roots.end()) return true;
    }
    return false;
  };
  Sum out;
  for (const auto& [pid, parent] : all) {
    if (!is_ours(pid)) continue;
    if (name_of(pid) == kCommand) {
      ++out.commands;
      continue;
    }
    const long size = pss_of(pid);
    out.readable = out.readable && size >= 0;
    out.kib += size;
    ++out.helpers;
  }
  return out;
}

// KiB of helpers for each of `count` sandboxes; negative when they did not all come about or cannot be read.
double measure(const Way& way, size_t count, double& helpers) {
  std::vector<pid_t> roots;
  for (size_t i = 0; i < count; ++i) roots.push_back(bench::start(way.argv));
  Sum sum;
  for (int tries = 0; tries < 600 && sum.commands < count; ++tries) {
    ::usleep(100'000);
    sum = sum_below(roots);
  }
  // What is only needed at the start has been given back by now, if it ever is.
  ::sleep(2);
  sum = sum_below(roots);
  for (const pid_t pid : roots) ::kill(pid, SIGTERM);
  for (const pid_t pid : roots) bench::wait_for(pid);
  helpers = static_cast<double>(sum.helpers) / static_cast<double>(count);
  if (sum.commands < count || !sum.readable) return -1;
  return static_cast<double>(sum.kib) / static_cast<double>(count);
}

std::vector<Way> ways(const std::string& belljar, const std::string& folder) {
  const std::vector<std::string> nap{kCommand, "600"};
  const auto with = [](std::vector<std::string> argv, const std::vector<std::string>& command) {
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  };
  const std::vector<std::string> run{belljar, "run", "--allow-host", "example.com", "--"};
  return {{"belljar run", with(run, nap), with(run, {"true"})},
          {"bwrap", bench::bubblewrap(folder, nap), bench::bubblewrap(folder, {"true"})},
          {"srt", {"srt", std::string(kCommand) + " 600"}, {"srt", "true"}}};
}

}  // namespace

// usage: bench_density [COUNT [BELLJAR]]
int main(int argc, char** argv) {
  const size_t count = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 50;
  const std::string belljar = argc > 2 ? argv[2] : bench::beside("belljar");
  const bench::Folder folder;
  if (bench::launch({"git", "init", "-q", "."}) != 0) return 1;  // a work folder as it is: with something to protect
  std::string json = "{\"bench\":\"density\",\"unit\":\"KiB\"," + bench::machine_json();
  std::printf("%-13s %12s %12s %9s\n", "KiB each", "1 sandbox", (std::to_string(count) + " at once").c_str(),
              "processes");
  bool good = true;
  for (const Way& way : ways(belljar, folder.path())) {
    const std::string fault = bench::fault_of(way.trial);
    double helpers = 0;
    const double one = fault.empty() ? measure(way, 1, helpers) : -1;
    const double many = fault.empty() ? measure(way, count, helpers) : -1;
    json += ",\"" + way.name + "\":";
    if (one < 0 || many < 0) {
      std::printf("%-13s %s\n", way.name.c_str(),
                  fault.empty() ? "cannot be measured here (as root it can)" : fault.c_str());
      json += "null";
      good = good && way.argv[0] != belljar;
      continue;
    }
    std::printf("%-13s %12.0f %12.0f %9.1f\n", way.name.c_str(), one, many, helpers);
    json += "{\"one\":" + std::to_string(one) + ",\"many\":" + std::to_string(many) +
            ",\"count\":" + std::to_string(count) + "}";
  }
  std::printf("%s}\n", json.c_str());
  return good ? 0 : 1;
}
