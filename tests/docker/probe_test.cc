// What a container's first process proves before the agent starts: each protection taken away from a real container,
// unchecked from outside, and the refusal of the check that is for it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "docker/weakness.h"
#include "docker/world.h"
#include "guest/protocol.h"
#include "tiers/docker/engine_json.h"
#include "tiers/docker/launch.h"
#include "tiers/docker/remove.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tiers::docker::Engine;
using tiers::docker::Meeting;
using tiers::docker::Prepared;

constexpr const char* kSession = "00112233445566aa";

base::Deadline soon() {
  return base::Deadline::after(std::chrono::seconds(60));
}

// A launch by hand, up to the guest's proof.
class Launch {
 public:
  Launch() {
    const uid_t uid = ::geteuid() == 0 ? 34567 : ::geteuid();
    if (::geteuid() == 0) (void)!::chown(work_.path().c_str(), uid, uid);
    ::mkdir((state_ / "containers").c_str(), 0700);
    plan_.mode = policy::Mode::kDocker;
    plan_.work_folder = plan_.chdir = work_.path();
    plan_.home = plan_.private_home = "/home/agent";
    plan_.command = {"true"};
    plan_.program = "true";
    plan_.identity = {
        .guest_uid = uid, .guest_gid = uid, .host_uid = uid, .host_gid = uid, .disk_uid = uid, .disk_gid = uid};
    for (const char* target : {"/tmp", "/var/tmp", "/dev/shm", "/home/agent"}) {
      plan_.mounts.push_back({.kind = plan::MountKind::kScratch, .target = target, .writable = true});
    }
    plan_.mounts.push_back({.target = work_.path(), .source = work_.path(), .writable = true});
    plan_.mounts.push_back({.kind = plan::MountKind::kFile, .target = "/etc/group", .source = "root:x:0:\n"});
    plan_.limits.scratch_bytes = 8 << 20;
    plan_.limits.scratch_files = 800;
    plan_.limits.open_files = 1000;
    plan_.limits.memory_bytes = 256 << 20;
    plan_.limits.pids = 100;
    plan_.hostname = "belljar";
    plan_.proxy_port = 61080;
    plan_.env = {{"PATH", "/bin"}};
    plan_.container = {DockerWorld::get().socket(), DockerWorld::kImage, DockerWorld::get().image_id(), {}};
  }
  ~Launch() {
    const auto removal = tiers::docker::remove({DockerWorld::get().socket(), kSession, path()}, false, soon());
    EXPECT_THAT(removal.unreleased, IsEmpty());
  }

  // The evidence, or the refusal.
  base::Result<guest::ProbeRecord> prove(const std::function<void(Prepared&, json&)>& weaken) {
    const Engine& engine = DockerWorld::get().engine();
    BELLJAR_ASSIGN(Meeting meeting, Meeting::make(path(), BELLJAR_GUEST));
    BELLJAR_ASSIGN(const tiers::docker::Image image, engine.image(plan_.container.image_id, soon()));
    BELLJAR_ASSIGN(Prepared prepared, tiers::docker::prepare(plan_, {}, kSession, meeting, engine, image));
    json request = json::parse(prepared.request);
    if (weaken) {
      weaken(prepared, request);
      prepared.check = false;
      prepared.request = request.dump();
    }
    const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    BELLJAR_ASSIGN(auto guest, tiers::docker::start(engine, prepared, meeting,
                                                    {.fds = {null.get(), null.get(), null.get()}}, soon()));
    return guest.prove(soon());
  }
  [[nodiscard]] std::string path() const { return state_ / "containers/" + kSession; }
  [[nodiscard]] const std::string& work() const { return work_.path(); }

 private:
  TempDir work_;
  TempDir state_;
  plan::Plan plan_;
};

// Those of this profile alone.
std::vector<Weakness> weaknesses() {
  using guest::Check;
  return {
      {Check::kNotDumpable, "dumpable", without_step(guest::kStepNotDumpable)},
      {Check::kMounts, "/run/belljar",
       [](Prepared&, json& request) { request["HostConfig"]["Mounts"][0]["ReadOnly"] = false; }},
      {Check::kMounts, "nosuid",
       patch(R"({"HostConfig":{"Tmpfs":{"/tmp":"rw,suid,nodev,exec,size=2097152,nr_inodes=200,mode=1777"}}})")},
      {Check::kMounts, "nodev",
       patch(R"({"HostConfig":{"Tmpfs":{"/tmp":"rw,nosuid,dev,exec,size=2097152,nr_inodes=200,mode=1777"}}})")},
      {Check::kMounts, "/var/tmp", patch(R"({"HostConfig":{"Tmpfs":{"/var/tmp":null}}})")},
      {Check::kScratch, "bytes of /tmp",
       patch(R"({"HostConfig":{"Tmpfs":{"/tmp":"rw,nosuid,nodev,exec,size=4194304,nr_inodes=200,mode=1777"}}})")},
      {Check::kScratch, "files of /tmp",
       patch(R"({"HostConfig":{"Tmpfs":{"/tmp":"rw,nosuid,nodev,exec,size=2097152,nr_inodes=201,mode=1777"}}})")},
      // An engine that followed a link that came after the plan, or lies.
      {Check::kMounts, "/etc/group",
       [](Prepared&, json& request) {
         for (json& mount : request["HostConfig"]["Mounts"]) {
           if (mount["Target"] == "/etc/group") mount["Source"] = "/etc/hostname";
         }
       }},
      {Check::kWorkFolder, "another folder",
       [](Prepared& prepared, json& request) {
         for (guest::ExpectedMount& mount : prepared.config.mounts) mount.inode = 0;
         for (json& mount : request["HostConfig"]["Mounts"]) {
           if (mount["Source"] == mount["Target"]) mount["Source"] = "/usr";
         }
       }},
      {Check::kInterfaces, "docker0", patch(R"({"Hostname":"belljar","HostConfig":{"NetworkMode":"host"}})")},
  };
}

TEST(ContainerProbe, ProvesAnIntactContainer) {
  Launch launch;
  const auto record = launch.prove({});
  ASSERT_TRUE(record.has_value()) << record.error().message();
  EXPECT_EQ(record->failed, 0U);
  EXPECT_GE(record->seccomp_filters, 2U) << "the engine's and init's own";
}

TEST(ContainerProbe, RefusesEachThatLacksAProtection) {
  std::vector<Weakness> all = weaknesses_of_the_boundary();
  std::ranges::move(weaknesses(), std::back_inserter(all));
  for (const Weakness& weakness : all) {
    Launch launch;
    const auto record = launch.prove(weakness.weaken);
    ASSERT_FALSE(record.has_value()) << guest::check_name(weakness.check) << " " << weakness.what;
    EXPECT_THAT(record.error().message(),
                AllOf(HasSubstr(std::string("probe ") + guest::check_name(weakness.check)), HasSubstr(weakness.what)));
  }
}

// A name is no property: another's container that bears it makes the launch fail, and stays.
TEST(ContainerName, OfAnothersContainerIsAnErrorAndLeftAlone) {
  const Engine& engine = DockerWorld::get().engine();
  const auto other = require(engine.post("/containers/create?name=" + tiers::docker::container_name(kSession),
                                         json{{"Image", DockerWorld::get().image_id()},
                                              {"Cmd", {"true"}},
                                              {"Labels", {{"belljar.session", "another"}}}}
                                             .dump(),
                                         soon()),
                             "create", "");
  ASSERT_TRUE(other.has_value()) << other.error().message();
  const std::string path = "/containers/" + tiers::docker::read_id(other->body).value_or("");
  {
    Launch launch;
    const auto record = launch.prove({});
    ASSERT_FALSE(record.has_value());
    EXPECT_THAT(record.error().message(), HasSubstr("already in use"));
  }
  EXPECT_TRUE(require(engine.ask("GET", path + "/json", soon()), "look", "").has_value()) << "it is not ours";
  EXPECT_TRUE(require(engine.ask("DELETE", path, soon()), "remove", "").has_value());
}

// Whoever comes to the meeting must be the container's first process.
TEST(ContainerMeeting, TakesNobodyElse) {
  const TempDir temp;
  ::mkdir((temp / "c").c_str(), 0700);
  const std::string path = temp / "c/0011";
  auto meeting = Meeting::make(path, BELLJAR_GUEST);
  ASSERT_TRUE(meeting.has_value()) << meeting.error().message();
  const Process visitor({.argv = {"python3", "-c",
                                  "import socket,sys,time\ns=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n"
                                  "s.connect(sys.argv[1])\ntime.sleep(100)",
                                  path + "/control"}});
  const auto met = meeting->receive(::geteuid(), std::string(64, 'a'), soon());
  ASSERT_FALSE(met.has_value());
  EXPECT_THAT(met.error().message(), HasSubstr("somebody else came, refusing"));
  EXPECT_FALSE(std::filesystem::exists(path + "/control")) << "nor anybody later";
  EXPECT_TRUE(tiers::docker::remove_meeting(path).has_value());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(tiers::docker::remove_meeting(path).has_value()) << "can be done again";
  EXPECT_FALSE(tiers::docker::remove_meeting("/tmp/another-folder").has_value());
}

TEST(ContainerMeeting, WaitsNoLongerThanItsDeadline) {
  const TempDir temp;
  auto meeting = Meeting::make(temp / "0011", BELLJAR_GUEST);
  ASSERT_TRUE(meeting.has_value());
  const auto met = meeting->receive(::geteuid(), "a", base::Deadline::after(std::chrono::milliseconds(20)));
  EXPECT_THAT(met.error().message(), HasSubstr("did not come in time, refusing"));
  EXPECT_TRUE(tiers::docker::remove_meeting(temp / "0011").has_value());
}

}  // namespace
}  // namespace belljar::testing
