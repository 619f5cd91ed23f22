// Every field that is compared before a container is started, changed: a real container with just that field other than
// the profile says is created, and the refusal seen. Where an engine rejects or drops the value, or the case cannot
// exist on this host, what the engine says of an intact container is changed on its way; the mutation says why, and the
// test that it was so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "docker/task_launch.h"
#include "docker/world.h"
#include "tiers/docker/engine_json.h"
#include "tiers/docker/storage/allocate.h"
#include "tiers/docker/storage/helpers.h"
#include "tiers/docker/storage/volume_json.h"
#include "tiers/docker/validate_json.h"

namespace belljar::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using tiers::docker::Difference;
using tiers::docker::Engine;
using tiers::docker::Field;
using tiers::docker::Profile;

struct Mutation {
  Field field;
  // A merge patch (RFC 7396) of the create request; null: only the reply is changed.
  const char* request;
  // What the field is in the reply instead, and why the engine cannot be had to say it; null: it can.
  const char* reply = nullptr;
  const char* why = nullptr;
};

constexpr const char* kNoLsm = "the host of this engine may have no such security module";
constexpr const char* kNotHere = "the host's kernel or the engine may not have it";
constexpr const char* kOtherSystems = "for engines of other systems";

constexpr std::array<Mutation, static_cast<size_t>(Field::kCount)> kMutations = {{
    {Field::kName, R"({"name":"another"})"},
    {Field::kImage, R"({"Image":"belljar-test:other"})"},
    {Field::kPath, R"({"Entrypoint":["/bin/ls"]})"},
    {Field::kArguments, R"({"Cmd":["200"]})"},
    {Field::kRunning, nullptr, R"("running")", "it would run what was not checked yet"},
    {Field::kAppArmor, nullptr, R"("unconfined")", kNoLsm},
    {Field::kProcessLabel, nullptr, R"("system_u:system_r:spc_t")", kNoLsm},
    {Field::kPlatform, nullptr, R"("windows")", kOtherSystems},
    {Field::kResolvedMounts, R"({"Volumes":{"/anonymous":{}}})"},
    {Field::kPorts, nullptr, R"({"80/tcp":[{"HostIp":"0.0.0.0","HostPort":"80"}]})", "none is bound before the start"},
    {Field::kNetworks, R"({"HostConfig":{"NetworkMode":"bridge"}})", R"({"bridge":{}})",
     "it may be entered at the start only"},
    {Field::kUser, R"({"User":"0:0"})"},
    {Field::kEntrypoint, R"({"Entrypoint":["/bin/ls"]})"},
    {Field::kCommand, R"({"Cmd":["200"]})"},
    {Field::kHostname, R"({"Hostname":"other"})"},
    {Field::kDomainname, R"({"Domainname":"example"})"},
    {Field::kWorkingFolder, R"({"WorkingDir":"/tmp"})"},
    {Field::kEnvironment, R"({"Env":["PATH=/work:/bin","KEY=secret","MORE=1"]})"},
    {Field::kLabels, R"({"Labels":{"belljar.session":"another"}})"},
    {Field::kTty, R"({"Tty":true})"},
    {Field::kOpenStdin, R"({"OpenStdin":true})"},
    {Field::kExposedPorts, R"({"ExposedPorts":{"80/tcp":{}}})"},
    {Field::kVolumes, R"({"Volumes":{"/anonymous":{}}})"},
    {Field::kHealthcheck, R"({"Healthcheck":{"Test":["CMD","id"]}})"},
    {Field::kNetworkDisabled, R"({"NetworkDisabled":true})", "true", kNotHere},
    {Field::kMacAddress, R"({"MacAddress":"02:42:ac:11:00:02"})", R"("02:42:ac:11:00:02")", "newer engines moved it"},
    {Field::kStopSignal, R"({"StopSignal":"SIGTERM"})"},
    {Field::kStopTimeout, R"({"StopTimeout":100})"},
    {Field::kOnBuild, R"({"OnBuild":["RUN id"]})", R"(["RUN id"])", "for images"},
    {Field::kShell, R"({"Shell":["/bin/other"]})"},
    {Field::kOtherConfig, nullptr, R"({"Unheard":true})", "no engine has it yet"},
    {Field::kBinds, R"({"HostConfig":{"Binds":["/tmp:/more"]}})"},
    {Field::kMounts, R"({"HostConfig":{"Mounts":[{"Type":"bind","Source":"/tmp","Target":"/work"}]}})"},
    {Field::kTmpfs, R"({"HostConfig":{"Tmpfs":{"/scratch":"rw,nosuid,nodev,exec,size=8192,nr_inodes=10,mode=0700"}}})"},
    {Field::kNetworkMode, R"({"HostConfig":{"NetworkMode":"host"}})"},
    {Field::kPortBindings, R"({"HostConfig":{"PortBindings":{"80/tcp":[{"HostPort":"80"}]}}})"},
    {Field::kPublishAllPorts, R"({"HostConfig":{"PublishAllPorts":true}})"},
    {Field::kRestartPolicy, R"({"HostConfig":{"RestartPolicy":{"Name":"always"}}})"},
    {Field::kAutoRemove, R"({"HostConfig":{"AutoRemove":true}})"},
    {Field::kVolumeDriver, R"({"HostConfig":{"VolumeDriver":"local"}})"},
    {Field::kVolumesFrom, R"({"HostConfig":{"VolumesFrom":["belljar-test-other"]}})"},
    {Field::kCapAdd, R"({"HostConfig":{"CapAdd":["NET_ADMIN"]}})"},
    {Field::kCapDrop, R"({"HostConfig":{"CapDrop":["NET_RAW"]}})"},
    {Field::kCgroupNamespace, R"({"HostConfig":{"CgroupnsMode":"host"}})"},
    {Field::kIpcMode, R"({"HostConfig":{"IpcMode":"shareable"}})"},
    {Field::kPidMode, R"({"HostConfig":{"PidMode":"host"}})"},
    {Field::kUtsMode, R"({"Hostname":null,"HostConfig":{"UTSMode":"host"}})"},
    {Field::kUserNamespace, R"({"HostConfig":{"UsernsMode":"host"}})"},
    {Field::kCgroup, R"({"HostConfig":{"Cgroup":"container:belljar-test-other"}})", R"("container:x")", kNotHere},
    {Field::kCgroupParent, R"({"HostConfig":{"CgroupParent":"/other"}})"},
    {Field::kDns, R"({"HostConfig":{"Dns":["192.0.2.1"]}})"},
    {Field::kDnsOptions, R"({"HostConfig":{"DnsOptions":["ndots:3"]}})"},
    {Field::kDnsSearch, R"({"HostConfig":{"DnsSearch":["example"]}})"},
    {Field::kExtraHosts, R"({"HostConfig":{"ExtraHosts":["api.example:192.0.2.1"]}})"},
    {Field::kGroupAdd, R"({"HostConfig":{"GroupAdd":["0"]}})"},
    {Field::kLinks, R"({"HostConfig":{"Links":["belljar-test-other:other"]}})", R"(["/a:/b/c"])",
     "not with the network none"},
    {Field::kOomScore, R"({"HostConfig":{"OomScoreAdj":-500}})"},
    {Field::kOomKillDisable, R"({"HostConfig":{"OomKillDisable":true}})", "true", kNotHere},
    {Field::kPrivileged, R"({"HostConfig":{"Privileged":true}})"},
    {Field::kReadOnlyRoot, R"({"HostConfig":{"ReadonlyRootfs":false}})"},
    {Field::kSecurityOptions, R"({"HostConfig":{"SecurityOpt":["no-new-privileges","seccomp=unconfined"]}})"},
    {Field::kShmSize, R"({"HostConfig":{"ShmSize":33554432}})"},
    {Field::kSysctls, R"({"HostConfig":{"Sysctls":{"net.ipv4.ip_forward":"1"}}})"},
    {Field::kStorageOptions, R"({"HostConfig":{"StorageOpt":{"size":"1G"}}})", R"({"size":"1G"})", kNotHere},
    {Field::kRuntime, R"({"HostConfig":{"Runtime":"io.containerd.runc.v2"}})"},
    {Field::kIsolation, R"({"HostConfig":{"Isolation":"hyperv"}})", R"("hyperv")", kOtherSystems},
    {Field::kInit, R"({"HostConfig":{"Init":true}})"},
    {Field::kLog, R"({"HostConfig":{"LogConfig":{"Type":"json-file"}}})"},
    {Field::kCpuShares, R"({"HostConfig":{"CpuShares":512}})"},
    {Field::kNanoCpus, R"({"HostConfig":{"NanoCpus":0}})"},
    {Field::kCpuPeriod, R"({"HostConfig":{"NanoCpus":0,"CpuPeriod":50000}})"},
    {Field::kCpuQuota, R"({"HostConfig":{"NanoCpus":0,"CpuQuota":50000}})"},
    {Field::kCpuRealtimePeriod, R"({"HostConfig":{"CpuRealtimePeriod":100000}})", "100000", kNotHere},
    {Field::kCpuRealtimeRuntime, R"({"HostConfig":{"CpuRealtimeRuntime":1000}})", "1000", kNotHere},
    {Field::kCpusetCpus, R"({"HostConfig":{"CpusetCpus":"0"}})"},
    {Field::kCpusetMems, R"({"HostConfig":{"CpusetMems":"0"}})"},
    {Field::kBlkioWeight, R"({"HostConfig":{"BlkioWeight":500}})", "500", kNotHere},
    {Field::kBlkioWeightDevice, R"({"HostConfig":{"BlkioWeightDevice":[{"Path":"/dev/null","Weight":500}]}})",
     R"([{"Path":"/dev/null","Weight":500}])", kNotHere},
    {Field::kBlkioReadBps, R"({"HostConfig":{"BlkioDeviceReadBps":[{"Path":"/dev/null","Rate":9}]}})",
     R"([{"Path":"/dev/null","Rate":9}])", kNotHere},
    {Field::kBlkioWriteBps, R"({"HostConfig":{"BlkioDeviceWriteBps":[{"Path":"/dev/null","Rate":9}]}})",
     R"([{"Path":"/dev/null","Rate":9}])", kNotHere},
    {Field::kBlkioReadIops, R"({"HostConfig":{"BlkioDeviceReadIOps":[{"Path":"/dev/null","Rate":9}]}})",
     R"([{"Path":"/dev/null","Rate":9}])", kNotHere},
    {Field::kBlkioWriteIops, R"({"HostConfig":{"BlkioDeviceWriteIOps":[{"Path":"/dev/null","Rate":9}]}})",
     R"([{"Path":"/dev/null","Rate":9}])", kNotHere},
    {Field::kDevices,
     R"({"HostConfig":{"Devices":[{"PathOnHost":"/dev/full","PathInContainer":"/dev/x","CgroupPermissions":"rw"}]}})"},
    {Field::kDeviceCgroupRules, R"({"HostConfig":{"DeviceCgroupRules":["c 1:3 r"]}})"},
    {Field::kDeviceRequests, R"({"HostConfig":{"DeviceRequests":[{"Driver":"x","Count":1}]}})"},
    {Field::kMemory, R"({"HostConfig":{"Memory":33554432}})"},
    {Field::kMemoryReservation, R"({"HostConfig":{"MemoryReservation":33554432}})"},
    {Field::kMemorySwap, R"({"HostConfig":{"MemorySwap":-1}})"},
    {Field::kMemorySwappiness, R"({"HostConfig":{"MemorySwappiness":60}})", "60", kNotHere},
    {Field::kKernelMemory, R"({"HostConfig":{"KernelMemory":33554432}})", "33554432", "newer engines dropped it"},
    {Field::kKernelMemoryTcp, R"({"HostConfig":{"KernelMemoryTCP":33554432}})", "33554432", kNotHere},
    {Field::kPidsLimit, R"({"HostConfig":{"PidsLimit":-1}})"},
    {Field::kUlimits, R"({"HostConfig":{"Ulimits":[{"Name":"nofile","Soft":64,"Hard":65}]}})"},
    {Field::kMaskedPaths, R"({"HostConfig":{"MaskedPaths":[]}})"},
    {Field::kReadonlyPaths, R"({"HostConfig":{"ReadonlyPaths":[]}})"},
    {Field::kOtherHostConfig, nullptr, R"({"Unheard":true})", "no engine has it yet"},
}};

consteval bool each_field_has_its_mutation() {
  for (size_t i = 0; i < kMutations.size(); ++i) {
    const Mutation& one = kMutations[i];
    if (one.field != static_cast<Field>(i) || (one.request == nullptr && one.reply == nullptr) ||
        (one.reply != nullptr) != (one.why != nullptr)) {
      return false;
    }
  }
  return true;
}
static_assert(each_field_has_its_mutation(), "a field that is compared has no mutation");

base::Deadline soon() {
  return base::Deadline::after(std::chrono::seconds(60));
}

class MutationTest : public ::testing::Test {
 protected:
  static const Engine& engine() { return DockerWorld::get().engine(); }

  void TearDown() override {
    for (const std::string& id : made_) (void)engine().ask("DELETE", "/containers/" + id + "?force=1&v=1", soon());
  }

  // Removes what the case before has made.
  std::optional<std::string> create(const std::string& name, const json& request) {
    const auto outcome = engine().post("/containers/create?name=" + name, request.dump(), soon());
    const auto* answer = std::get_if<tiers::docker::Answered>(&outcome);
    if (answer == nullptr) return std::nullopt;
    made_.push_back(tiers::docker::read_id(answer->body).value_or(""));
    return made_.back();
  }
  static json inspect(const std::string& id) {
    const auto answer = require(engine().ask("GET", "/containers/" + id + "/json", soon()), "inspect", id);
    return answer ? json::parse(answer->body) : json();
  }
  void remove(const std::string& id) {
    (void)engine().ask("DELETE", "/containers/" + id + "?force=1&v=1", soon());
    std::erase(made_, id);
  }

  [[nodiscard]] Profile profile() const {
    Profile out;
    out.name = "belljar-test-mutated";
    out.image_id = DockerWorld::get().image_id();
    out.hostname = "belljar";
    out.uid = 1000;
    out.gid = 1000;
    out.entrypoint = {"/bin/sleep"};
    out.command = {"100"};
    out.working_folder = "/work";
    out.env = {"PATH=/usr/local/bin:/bin", "KEY=secret"};
    out.labels = {{"made-by", "tests"}, {"belljar.session", "0123456789abcdef"}};
    out.binds = {{work_.path(), "/work", true}, {work_.path(), "/again", false}};
    out.tmpfs = {{"/tmp", 1 << 20, 100, 01777, 1000, 1000, true}, {"/scratch", 8192, 10, 0700, 1000, 1000, false}};
    out.ulimits = {{"nofile", 64, 64}};
    out.memory_bytes = 64 << 20;
    out.nano_cpus = 1'000'000'000;
    out.pids = 50;
    out.shm_bytes = 1 << 20;
    out.seccomp_by_name = tiers::docker::knows_builtin_seccomp(engine().info());
    return out;
  }

  // The refusal that a reply gives, as field names.
  static std::vector<std::string> refused(const Profile& profile, const json& reply) {
    const auto found = differences(profile, reply.dump());
    std::vector<std::string> out;
    for (const Difference& one : found.value_or(std::vector<Difference>{})) out.push_back(field_name(one.field));
    EXPECT_EQ(validate(profile, reply.dump()).has_value(), out.empty());
    return out;
  }

  // Makes a container with the mutation's field changed. Null when the engine refuses or drops it.
  json made_with(const Mutation& mutation, const Profile& from) {
    if (mutation.request == nullptr) return {};
    json patch = json::parse(mutation.request);
    std::string name = from.name;
    if (patch.contains("name")) {
      name = patch["name"];
      patch.erase("name");
    }
    json request = json::parse(create_request(from));
    request.merge_patch(patch);
    const auto id = create(name, request);
    if (!id) return {};
    json out = inspect(*id);
    remove(*id);
    return out;
  }

  void change_each_field(const Profile& wanted);

  const TempDir work_;
  std::vector<std::string> made_;
};

TEST_F(MutationTest, AnIntactContainerIsAsTheProfileSays) {
  const Profile wanted = profile();
  ASSERT_TRUE(check_engine(engine().info()).has_value());
  const auto id = create(wanted.name, json::parse(create_request(wanted)));
  ASSERT_TRUE(id.has_value());
  const auto status = validate(wanted, inspect(*id).dump());
  EXPECT_TRUE(status.has_value()) << status.error().message();
}

void MutationTest::change_each_field(const Profile& wanted) {
  ASSERT_TRUE(create("belljar-test-other", json::parse(create_request(wanted))).has_value());
  const auto intact_id = create(wanted.name, json::parse(create_request(wanted)));
  ASSERT_TRUE(intact_id.has_value());
  const json intact = inspect(*intact_id);
  remove(*intact_id);
  std::string in_flight;
  for (const Mutation& mutation : kMutations) {
    const std::string name = field_name(mutation.field);
    if (const json made = made_with(mutation, wanted); !made.is_null()) {
      const auto found = refused(wanted, made);
      if (std::ranges::find(found, name) != found.end()) continue;
    }
    ASSERT_NE(mutation.reply, nullptr) << name << ": the engine made no container that differs there";
    json changed = intact;
    std::string pointer = "/" + name;
    std::ranges::replace(pointer, '.', '/');
    json value = json::parse(mutation.reply);
    if (mutation.field == Field::kOtherConfig || mutation.field == Field::kOtherHostConfig) {
      json whole = intact.at(json::json_pointer(pointer));
      whole.update(value);
      value = std::move(whole);
    }
    changed[json::json_pointer(pointer)] = value;
    EXPECT_THAT(refused(wanted, changed), Contains(name));
    in_flight += "  " + name + ": " + mutation.why + "\n";
  }
  std::printf("changed in the engine's reply, not in a container:\n%s", in_flight.c_str());
}

TEST_F(MutationTest, EachChangedFieldIsRefusedByItsName) {
  change_each_field(profile());
}

// The same table over the profile of a task with all that it can have.
TEST_F(MutationTest, EachChangedFieldOfATasksContainerIsRefusedByItsName) {
  TaskLaunch launch(BELLJAR_GUEST, {.agent = "codex", .login = R"({"OPENAI_API_KEY":"x"})", .schema = "{}"});
  const auto prepared = launch.prepare();
  ASSERT_TRUE(prepared.has_value()) << prepared.error().message();
  change_each_field(prepared->profile);
}

TEST_F(MutationTest, ATasksVolumesAreExactlyThoseAskedFor) {
  TaskLaunch launch(BELLJAR_GUEST, {.phase = tiers::docker::task::Phase::kReview});
  const auto prepared = launch.prepare();
  ASSERT_TRUE(prepared.has_value()) << prepared.error().message();
  const Profile& wanted = prepared->profile;
  const auto with = [&](const std::function<void(json&)>& change) {
    json request = json::parse(create_request(wanted));
    change(request["HostConfig"]["Mounts"]);
    const auto id = create(wanted.name, request);
    EXPECT_TRUE(id.has_value());
    json reply = inspect(id.value_or(""));
    remove(id.value_or(""));
    return refused(wanted, reply);
  };
  EXPECT_THAT(with([](json&) {}), IsEmpty());
  const auto both = ::testing::AllOf(Contains("HostConfig.Mounts"), Contains("Mounts"));
  EXPECT_THAT(with([](json& mounts) { mounts[0]["ReadOnly"] = false; }), both) << "a phase that may write";
  EXPECT_THAT(with([](json& mounts) { mounts[1]["ReadOnly"] = false; }), both) << "metadata to be written";
  EXPECT_THAT(with([](json& mounts) { mounts[1]["Source"] = mounts[0]["Source"]; }), both) << "the work again";
  EXPECT_THAT(with([](json& mounts) { mounts[0]["VolumeOptions"]["NoCopy"] = false; }), Contains("HostConfig.Mounts"));
  EXPECT_THAT(with([](json& mounts) { mounts.erase(1); }), both) << "no metadata of its own";
  Profile elsewhere = wanted;
  elsewhere.volumes[0].source = "/somewhere/else";
  const auto id = create(wanted.name, json::parse(create_request(wanted)));
  ASSERT_TRUE(id.has_value());
  EXPECT_THAT(refused(elsewhere, inspect(*id)), ::testing::ElementsAre("Mounts"));
}

// The same table for the two containers of a task's storage, which have volumes that are there.
TEST_F(MutationTest, EachChangedFieldOfKeeperAndSeederIsRefusedByItsName) {
  namespace storage = tiers::docker::storage;
  storage::TaskStorage of = storage::plan_storage("00000000000000c1", "00000000000000c1fedcba9876543210", "clone",
                                                  DockerWorld::get().image_id(), {1 << 20, 50, 1 << 20, 50});
  for (const storage::Part part : {storage::Part::kWork, storage::Part::kGit}) {
    ASSERT_TRUE(
        require(engine().post("/volumes/create", storage::create_request(of, part), soon()), "create", "").has_value());
    const auto found = require(engine().ask("GET", "/volumes/" + volume_of(of, part).name, soon()), "inspect", "");
    ASSERT_TRUE(found.has_value());
    const auto mountpoint = storage::check_volume(of, part, found->body);
    ASSERT_TRUE(mountpoint.has_value()) << mountpoint.error().message();
    (part == storage::Part::kWork ? of.work : of.git).mountpoint = *mountpoint;
  }
  const auto image = engine().image(of.image_id, soon());
  ASSERT_TRUE(image.has_value());
  for (const Profile& wanted : {storage::keeper_profile(of, *image, engine().info()),
                                storage::seeder_profile(of, *image, engine().info(), work_.path())}) {
    change_each_field(wanted);
    while (!made_.empty()) remove(std::string(made_.back()));
    // And what only they have: one volume more, one less, one writable, one for the other.
    const json request = json::parse(create_request(wanted));
    const auto with_mounts = [&](const json& mounts) {
      json changed = request;
      changed["HostConfig"]["Mounts"] = mounts;
      const auto id = create(wanted.name, changed);
      EXPECT_TRUE(id.has_value());
      auto out = refused(wanted, inspect(*id));
      remove(*id);
      return out;
    };
    const json mounts = request["HostConfig"]["Mounts"];
    EXPECT_THAT(with_mounts(mounts), IsEmpty());
    json changed = mounts;
    changed[0]["ReadOnly"] = !changed[0]["ReadOnly"].get<bool>();
    EXPECT_THAT(with_mounts(changed), AllOf(Contains("HostConfig.Mounts"), Contains("Mounts")));
    changed = mounts;
    changed[0]["Source"] = of.git.name;
    EXPECT_THAT(with_mounts(changed), AllOf(Contains("HostConfig.Mounts"), Contains("Mounts")));
    changed = mounts;
    changed.erase(1);
    EXPECT_THAT(with_mounts(changed), AllOf(Contains("HostConfig.Mounts"), Contains("Mounts")));
    changed = mounts;
    changed.push_back({{"Type", "volume"}, {"Source", of.git.name}, {"Target", "/more"}, {"ReadOnly", true}});
    EXPECT_THAT(with_mounts(changed), AllOf(Contains("HostConfig.Mounts"), Contains("Mounts")));
    // A volume whose content the engine says is elsewhere.
    const auto id = create(wanted.name, request);
    json moved = inspect(*id);
    remove(*id);
    for (json& one : moved["Mounts"]) one["Source"] = "/elsewhere";
    EXPECT_THAT(refused(wanted, moved), Contains("Mounts"));
  }
  EXPECT_THAT(storage::release(engine().socket(), of, false, soon()).unreleased, IsEmpty());
}

TEST_F(MutationTest, WhatIsOnlyPartlyAskedForIsRefusedToo) {
  const Profile wanted = profile();
  const auto id = create(wanted.name, json::parse(create_request(wanted)));
  ASSERT_TRUE(id.has_value());
  const json intact = inspect(*id);
  const auto with = [&](const char* pointer, const json& value) {
    json changed = intact;
    changed[json::json_pointer(pointer)] = value;
    return refused(wanted, changed);
  };
  const std::string tmp = intact["HostConfig"]["Tmpfs"]["/tmp"];
  EXPECT_THAT(with("/HostConfig/Tmpfs/~1tmp", tmp + ",nosuid"), Contains("HostConfig.Tmpfs")) << "a duplicate";
  EXPECT_THAT(with("/HostConfig/Tmpfs/~1tmp", tmp + ",suid"), Contains("HostConfig.Tmpfs")) << "a contradiction";
  EXPECT_THAT(with("/HostConfig/Tmpfs/~1more", tmp), Contains("HostConfig.Tmpfs"));
  EXPECT_THAT(with("/HostConfig/CapDrop", {"ALL", "ALL"}), Contains("HostConfig.CapDrop"));
  EXPECT_THAT(with("/HostConfig/SecurityOpt", json::array()), Contains("HostConfig.SecurityOpt"));
  EXPECT_THAT(with("/Config/Env", {"PATH=/usr/local/bin:/bin"}), Contains("Config.Env"));
  EXPECT_THAT(with("/Mounts/0/Source", "/etc"), Contains("Mounts"));
  EXPECT_THAT(with("/Mounts/0/RW", !intact["Mounts"][0]["RW"].get<bool>()), Contains("Mounts"));
  EXPECT_THAT(with("/Mounts/2", intact["Mounts"][0]), Contains("Mounts"));
  EXPECT_THAT(with("/HostConfig/Mounts/0/BindOptions/ReadOnlyNonRecursive", true), Contains("HostConfig.Mounts"))
      << "what lies below it would be writable";
  // And what means the same is not.
  EXPECT_THAT(with("/HostConfig/Mounts/1/BindOptions/ReadOnlyNonRecursive", true), IsEmpty())
      << "nothing lies below it";
  EXPECT_THAT(with("/HostConfig/CapAdd", json::array()), IsEmpty());
  EXPECT_THAT(with("/HostConfig/Devices", nullptr), IsEmpty());
  EXPECT_THAT(with("/HostConfig/RestartPolicy/Name", "no"), IsEmpty());
  EXPECT_THAT(with("/Mounts/0/Source", "/host_mnt" + intact["Mounts"][0]["Source"].get<std::string>()), IsEmpty());
  EXPECT_THAT(with("/HostConfig/Mounts/0/Source", "/host_mnt" + work_.path()), IsEmpty());
}

TEST_F(MutationTest, NoValueOfTheEnvironmentIsTold) {
  const Profile wanted = profile();
  const auto id = create(wanted.name, json::parse(create_request(wanted)));
  ASSERT_TRUE(id.has_value());
  json changed = inspect(*id);
  changed["Config"]["Env"] = {"PATH=/usr/local/bin:/bin", "KEY=other-secret"};
  const auto status = validate(wanted, changed.dump());
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().message(), HasSubstr("KEY="));
  EXPECT_THAT(status.error().message(), Not(HasSubstr("secret")));
}

TEST_F(MutationTest, AnAnswerThatIsNoneIsRefused) {
  for (const char* body : {"", "null", "[]", "{}", "{\"HostConfig\":7,\"Config\":[1],\"Mounts\":3}"}) {
    EXPECT_FALSE(validate(profile(), body).has_value()) << body;
  }
}

TEST_F(MutationTest, AnEngineWithoutItsBuiltinProfileOrLimitsIsRefused) {
  auto info = engine().info();
  info.api = "1.41";
  info.security_options = {"name=seccomp,profile=/etc/docker/seccomp.json"};
  EXPECT_THAT(check_engine(info).error().message(), HasSubstr("builtin seccomp profile"));
  info.security_options = {};
  EXPECT_FALSE(check_engine(info).has_value());
  info = engine().info();
  info.pids_limit = false;
  EXPECT_THAT(check_engine(info).error().message(), HasSubstr("PidsLimit"));
  info = engine().info();
  info.runtimes = {"crun"};
  EXPECT_THAT(check_engine(info).error().message(), HasSubstr("runc"));
}

}  // namespace
}  // namespace belljar::testing
