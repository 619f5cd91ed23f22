#include "docker/task_storage.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "docker/world.h"
#include "support/belljar.h"
#include "tiers/docker/engine_json.h"
#include "tiers/docker/frames.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using tiers::docker::Answered;

base::Deadline soon() {
  return base::Deadline::after(std::chrono::seconds(60));
}

const tiers::docker::Engine& engine() {
  return DockerWorld::get().engine();
}

std::string body_of(const tiers::docker::Outcome& outcome) {
  const auto* answer = std::get_if<Answered>(&outcome);
  if (answer == nullptr) ADD_FAILURE() << require(outcome, "ask the engine", "").error().message();
  return answer != nullptr ? answer->body : std::string();
}

}  // namespace

TaskVolumes::TaskVolumes(std::string task) : task_(std::move(task)) {
  for (const char* part : {"work", "git"}) {
    const json request = {{"Name", "belljar-test-" + task_ + "-" + part},
                          {"Driver", "local"},
                          {"Labels", {{"belljar.task", task_}, {"belljar.part", part}}},
                          {"DriverOpts",
                           {{"type", "tmpfs"},
                            {"device", "tmpfs"},
                            {"o", "size=" + std::to_string(kBytes) + ",nr_inodes=" + std::to_string(kFiles) +
                                      ",mode=0755,uid=10001,gid=10001,nosuid,nodev"}}}};
    const json made = json::parse(body_of(engine().post("/volumes/create", request.dump(), soon())), nullptr, false);
    auto& mount = part == std::string("work") ? volumes_.work : volumes_.metadata;
    mount.name = made.value("Name", "");
    mount.source = made.value("Mountpoint", "");
    mount.bytes = kBytes;
    mount.files = kFiles;
  }
  // A tmpfs volume holds its content while a container that uses it runs.
  const auto mount = [](const std::string& name, const char* target) {
    return json{{"Type", "volume"}, {"Source", name}, {"Target", target}, {"VolumeOptions", {{"NoCopy", true}}}};
  };
  const json keeper = {{"Image", DockerWorld::get().image_id()},
                       {"User", "10001:10001"},
                       {"Cmd",
                        {"sh", "-c",
                         "mkdir /work/.git; echo content >/work/file; echo ref: refs/heads/main >/git/HEAD; touch "
                         "/work/.ready; sleep 1000"}},
                       {"HostConfig",
                        {{"NetworkMode", "none"},
                         {"Mounts", {mount(volumes_.work.name, "/work"), mount(volumes_.metadata.name, "/git")}}}}};
  keeper_ = tiers::docker::read_id(body_of(engine().post("/containers/create", keeper.dump(), soon()))).value_or("");
  body_of(engine().ask("POST", "/containers/" + keeper_ + "/start", soon()));
  EXPECT_TRUE(eventually([&] { return !inside("ls /work/.ready 2>/dev/null").empty(); }));
}

TaskVolumes::~TaskVolumes() {
  (void)engine().ask("DELETE", "/containers/" + keeper_ + "?force=1&v=1", soon());
  for (const auto& volume : {volumes_.work, volumes_.metadata}) {
    (void)engine().ask("DELETE", "/volumes/" + volume.name + "?force=1", soon());
  }
}

std::string TaskVolumes::inside(const std::string& command) const {
  const json request = {
      {"AttachStdout", true}, {"AttachStderr", true}, {"User", "0:0"}, {"Cmd", {"sh", "-c", command}}};
  const std::string id =
      tiers::docker::read_id(body_of(engine().post("/containers/" + keeper_ + "/exec", request.dump(), soon())))
          .value_or("");
  tiers::docker::Hijacked taken;
  const auto started =
      require(engine().hijack("/exec/" + id + "/start", R"({"Detach":false,"Tty":false})", taken, soon()), "start", id);
  if (!started) return {};
  const auto output = tiers::docker::gather(std::move(taken), "", size_t{1} << 20U, soon());
  return output ? output->out + output->err : std::string();
}

}  // namespace belljar::testing
