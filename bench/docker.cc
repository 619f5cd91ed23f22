// Time from the request to the first instruction of a command in a container: belljar's, validated and probed, in mode
// docker and as a phase of a task, beside a plain `docker run` of the same image, in one run and interleaved. Needs
// root, for an engine of its own.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "docker/test_task.h"
#include "docker/world.h"
#include "docker_seeding.h"
#include "support.h"
#include "support/belljar.h"

namespace {

using belljar::testing::Command;
using belljar::testing::DockerWorld;

struct Way {
  std::string name;
  Command command;
  std::vector<double> first;  // ms until its first line
  std::vector<double> whole;  // until it has ended
  bool works = true;
};

void measure(Way& way) {
  const double begun = bench::now_ms();
  belljar::testing::Process process(way.command);
  const bool said = process.read_line() == "here";
  way.first.push_back(bench::now_ms() - begun);
  way.works = process.wait().code == 0 && said && way.works;
  way.whole.push_back(bench::now_ms() - begun);
}

std::vector<Way> ways(const std::string& work, const std::string& state, const belljar::testing::TestTask& task) {
  const std::string& socket = DockerWorld::get().socket();
  std::vector<Way> out(4);
  out[0].name = "docker run";
  out[0].command = {.argv = {"docker", "-H", "unix://" + socket, "run", "--rm", "--network", "none",
                             DockerWorld::kImage, "echo", "here"}};
  // What a careful person writes.
  out[1].name = "docker run, locked";
  out[1].command = {.argv = {"docker",
                             "-H",
                             "unix://" + socket,
                             "run",
                             "--rm",
                             "--network",
                             "none",
                             "--read-only",
                             "--cap-drop",
                             "ALL",
                             "--security-opt",
                             "no-new-privileges",
                             "--user",
                             "23456:23456",
                             "--pids-limit",
                             "100",
                             "--memory",
                             "256m",
                             "--tmpfs",
                             "/tmp",
                             "--volume",
                             work + ":" + work,
                             "--workdir",
                             work,
                             DockerWorld::kImage,
                             "echo",
                             "here"}};
  out[2].name = "belljar run";
  out[2].command =
      belljar::testing::sealed(work, {"echo", "here"}, {"--mode", "docker", "--docker-image", DockerWorld::kImage});
  out[2].command.env = {{"DOCKER_HOST", "unix://" + socket}, {"XDG_STATE_HOME", state}, {"HOME", state}};
  // On storage that is there already.
  out[3].name = "belljar task run";
  out[3].command = task.belljar({"task", "run", task.id(), "--phase", "execute", "--", "echo", "here"});
  return out;
}

}  // namespace

// usage: bench_docker [ROUNDS [seeding]]: with `seeding`, that alone
int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  const belljar::testing::TempDir work;
  const belljar::testing::TempDir state;
  if (::chown(work.path().c_str(), 23456, 23456) != 0) {
    std::fprintf(stderr, "bench_docker: it starts an engine of its own, and needs root for that\n");
    return 1;
  }
  bool good = true;
  if (argc > 2 && std::string(argv[2]) == "seeding") {
    good = bench::measure_seeding(rounds);
    DockerWorld::end();
    return good ? 0 : 1;
  }
  {
    const belljar::testing::TestTask task(state / "of-task", DockerWorld::get().image_id(),
                                          DockerWorld::get().socket());
    std::vector<Way> all = ways(work.path(), state.path(), task);
    for (Way& way : all) measure(way);  // once, so that all is in memory
    for (Way& way : all) way.first.clear(), way.whole.clear();
    for (int i = 0; i < rounds; ++i) {
      for (Way& way : all) measure(way);
    }
    std::string json = "{\"bench\":\"docker\",\"unit\":\"ms\"," + bench::machine_json() + ",\"engine\":\"" +
                       DockerWorld::get().engine().info().version + "\"";
    std::printf("%-20s %12s %12s %10s\n", "ms, median", "first line", "whole", "to plain");
    const double plain = bench::quantile(all[0].first, 0.5);
    for (const Way& way : all) {
      const double first = bench::quantile(way.first, 0.5);
      const double whole = bench::quantile(way.whole, 0.5);
      std::printf("%-20s %12.0f %12.0f %10.2f%s\n", way.name.c_str(), first, whole, first / plain,
                  way.works ? "" : "  FAILED");
      json += ",\"" + way.name + "\":{\"first\":" + std::to_string(first) + ",\"whole\":" + std::to_string(whole) + "}";
      good = good && way.works;
    }
    std::printf("%s}\n", json.c_str());
  }
  good = bench::measure_seeding(5) && good;
  DockerWorld::end();
  return good ? 0 : 1;
}
