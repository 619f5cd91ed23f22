// How long a launch takes, end to end, as a shell sees it: from the spawn of the launcher to its end, for `/bin/true`.
// The ways are interleaved round by round, so that whatever the machine does meanwhile falls on all of them alike;
// medians and their ratios are what travels to other machines.
#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support.h"

namespace {

struct Way {
  std::string name;
  std::vector<std::string> argv;
  int every = 1;                // takes part in one of so many rounds: the slow ones would make the run last an hour
  std::string missing{};        // why it takes no part, if it does not
  std::vector<double> times{};  // milliseconds
};

std::vector<Way> ways(const std::string& belljar, const std::string& folder) {
  const char* image = std::getenv("BELLJAR_BENCH_IMAGE");
  const std::string name = image != nullptr ? image : "debian:12";
  return {{"plain exec", {"/bin/true"}},
          {"bwrap", bench::bubblewrap(folder, {"/bin/true"})},
          {"belljar run", {belljar, "run", "--", "/bin/true"}},
          {"with claude", {belljar, "run", "--agent", "claude", "--", "/bin/true"}},
          {"bare launcher", {std::filesystem::path(belljar).parent_path() / "bare-launcher", "/bin/true"}},
          {"docker run",
           {"docker", "run", "--rm", "--network", "none", "-v", folder + ":" + folder, "-w", folder, name, "/bin/true"},
           20},
          {"srt", {"srt", "true"}, 20}};
}

void print_table(const std::vector<Way>& all) {
  std::printf("%-13s %8s %8s %8s %7s %9s %9s\n", "", "median", "p10", "p90", "rounds", "to plain", "to bwrap");
  const auto ratio = [](const Way& way, const Way& base) {
    if (!base.missing.empty()) return std::string("-");
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%.2f", bench::quantile(way.times, 0.5) / bench::quantile(base.times, 0.5));
    return std::string(text.data());
  };
  for (const Way& way : all) {
    if (!way.missing.empty()) {
      std::printf("%-13s %s\n", way.name.c_str(), way.missing.c_str());
      continue;
    }
    std::printf("%-13s %8.2f %8.2f %8.2f %7zu %9s %9s\n", way.name.c_str(), bench::quantile(way.times, 0.5),
                bench::quantile(way.times, 0.1), bench::quantile(way.times, 0.9), way.times.size(),
                ratio(way, all[0]).c_str(), ratio(way, all[1]).c_str());
  }
}

void print_json(const std::vector<Way>& all) {
  std::printf("{\"bench\":\"launch\",\"unit\":\"ms\",%s", bench::machine_json().c_str());
  for (const Way& way : all) {
    if (!way.missing.empty()) {
      std::printf(",\"%s\":null", way.name.c_str());
    } else {
      std::printf(",\"%s\":{\"median\":%.3f,\"p10\":%.3f,\"p90\":%.3f,\"rounds\":%zu}", way.name.c_str(),
                  bench::quantile(way.times, 0.5), bench::quantile(way.times, 0.1), bench::quantile(way.times, 0.9),
                  way.times.size());
    }
  }
  std::printf("}\n");
}

// A home in which Claude Code has been at work for long: 5,000 files of transcripts, settings and agents.
void make_home(const std::string& home, const std::string& project) {
  namespace fs = std::filesystem;
  std::string name = project;
  std::ranges::replace(name, '/', '-');
  const auto write = [](const fs::path& path) {
    fs::create_directories(path.parent_path());
    if (std::FILE* file = std::fopen(path.c_str(), "we")) {
      std::fputs("{}\n", file);
      std::fclose(file);
    }
  };
  write(home + "/.claude.json");
  for (const char* file : {"settings.json", "CLAUDE.md", "history.jsonl", ".credentials.json"}) {
    write(home + "/.claude/" + file);
  }
  for (int i = 0; i < 5000; ++i) {
    const std::string number = std::to_string(i);
    constexpr std::array kPlaces = {"/agents/", "/commands/", "/skills/", "/todos/", "/file-history/", "/projects/"};
    std::string place = kPlaces[static_cast<size_t>(i) % kPlaces.size()];
    if (place == "/projects/") place += (i % 12 < 6 ? name : "other-" + number) + "/";
    write(home + "/.claude" + place + number + ".json");
  }
}

// One table. 0, or 1 when a launch failed.
int measure(int rounds, const std::string& belljar) {
  const bench::Folder folder;
  const std::string home = folder.path() + "-home";
  make_home(home, folder.path());
  ::setenv("HOME", home.c_str(), 1);
  for (const char* name : {"XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"}) ::unsetenv(name);
  std::vector<Way> all = ways(belljar, folder.path());
  // One launch of each, not counted: it warms the caches and tells who is there.
  for (Way& way : all) way.missing = bench::fault_of(way.argv);
  int failed = 0;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < all.size(); ++i) {
      Way& way = all[(i + static_cast<size_t>(round)) % all.size()];
      if (!way.missing.empty() || round % way.every != 0) continue;
      const double start = bench::now_ms();
      const int status = bench::launch(way.argv);
      way.times.push_back(bench::now_ms() - start);
      failed += status == 0 ? 0 : 1;
    }
  }
  std::filesystem::remove_all(home);
  std::printf("started by %s\n", ::geteuid() == 0 ? "root" : "an ordinary user");
  print_table(all);
  print_json(all);
  std::fflush(stdout);
  if (failed == 0 && all[2].missing.empty()) return 0;
  std::fprintf(stderr, "bench_launch: %d launches failed%s\n", failed,
               all[2].missing.empty() ? "" : ", belljar's among them");
  return 1;
}

// The same as an ordinary user, by a child that becomes one.
int measure_as_user(int rounds, const std::string& belljar) {
  constexpr unsigned kNobody = 65534;
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool good = ::setgroups(0, nullptr) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
                      ::setresuid(kNobody, kNobody, kNobody) == 0;
    ::_exit(good ? measure(rounds, belljar) : 1);
  }
  return bench::wait_for(pid);
}

}  // namespace

// usage: bench_launch [ROUNDS [BELLJAR]]
int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  const std::string belljar = argc > 2 ? argv[2] : bench::beside("belljar");
  const int failed = measure(rounds, belljar);
  return ::geteuid() == 0 && measure_as_user(rounds, belljar) != 0 ? 1 : failed;
}
