// Every field of a volume that is compared, changed: a real volume with just that field other than was asked for, and
// the refusal seen. Where an engine rejects or drops the value, its reply about an intact one is changed instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "docker/world.h"
#include "tiers/docker/storage/allocate.h"
#include "tiers/docker/storage/volume_json.h"

namespace belljar::testing {
namespace {

namespace storage = tiers::docker::storage;
using nlohmann::json;
using storage::Part;
using storage::TaskStorage;
using storage::VolumeField;
using ::testing::HasSubstr;

struct Mutation {
  VolumeField field;
  // Merge patches (RFC 7396): of the create request, and of the reply when the engine cannot be had to say it.
  const char* request;
  const char* reply = nullptr;
  const char* why = nullptr;
};

constexpr std::array<Mutation, static_cast<size_t>(VolumeField::kCount)> kMutations = {{
    {VolumeField::kName, R"({"Name":"belljar-test-another"})"},
    {VolumeField::kDriver, nullptr, R"({"Driver":"nfs"})", "there is no other driver here"},
    {VolumeField::kScope, nullptr, R"({"Scope":"global"})", "the local driver has one scope"},
    {VolumeField::kType, R"({"DriverOpts":{"type":"none"}})"},
    {VolumeField::kDevice, R"({"DriverOpts":{"device":"other"}})"},
    {VolumeField::kOptions, R"({"DriverOpts":{"o":"nosuid,nodev,mode=0755,uid=10001,gid=10001"}})"},
    {VolumeField::kOtherOptions, nullptr, R"({"Options":{"addr":"192.0.2.1"}})", "the local driver refuses them"},
    {VolumeField::kLabels, R"({"Labels":{"belljar.allocation":"another"}})"},
    {VolumeField::kMountpoint, nullptr, R"({"Mountpoint":""})", "the engine chooses it"},
    {VolumeField::kStatus, nullptr, R"({"Status":{"state":"odd"}})", "the local driver has none"},
    {VolumeField::kOther, nullptr, R"({"ClusterVolume":{"ID":"x"}})", "for engines in a swarm"},
}};

consteval bool each_field_has_its_mutation() {
  for (size_t i = 0; i < kMutations.size(); ++i) {
    const Mutation& one = kMutations[i];
    if (one.field != static_cast<VolumeField>(i) || (one.request == nullptr) == (one.reply == nullptr) ||
        (one.reply != nullptr) != (one.why != nullptr)) {
      return false;
    }
  }
  return true;
}
static_assert(each_field_has_its_mutation(), "a field of a volume that is compared has no mutation");

class VolumeMutationTest : public ::testing::Test {
 protected:
  static base::Deadline soon() { return base::Deadline::after(std::chrono::seconds(60)); }
  static const tiers::docker::Engine& engine() { return DockerWorld::get().engine(); }
  // Made of `request`, looked at, and removed.
  static json made_of(const json& request) {
    const std::string name = request["Name"];
    const auto made = require(engine().post("/volumes/create", request.dump(), soon()), "create", name);
    EXPECT_TRUE(made.has_value()) << made.error().message();
    const auto found = require(engine().ask("GET", "/volumes/" + name, soon()), "inspect", name);
    EXPECT_TRUE(found.has_value()) << found.error().message();
    EXPECT_TRUE(require(engine().ask("DELETE", "/volumes/" + name, soon()), "remove", name).has_value());
    return found ? json::parse(found->body) : json();
  }
  const TaskStorage of_ = storage::plan_storage("00000000000000d1", "00000000000000d1fedcba9876543210", "clone",
                                                "sha256:none", {10'000, 50, 1 << 20, 50});
};

TEST_F(VolumeMutationTest, EachChangedFieldIsRefusedByItsName) {
  for (const Part part : {Part::kWork, Part::kGit}) {
    const json request = json::parse(storage::create_request(of_, part));
    const json intact = made_of(request);
    const auto good = storage::check_volume(of_, part, intact.dump());
    ASSERT_TRUE(good.has_value()) << good.error().message();
    for (const Mutation& mutation : kMutations) {
      json reply = intact;
      if (mutation.request != nullptr) {
        json changed = request;
        changed.merge_patch(json::parse(mutation.request));
        reply = made_of(changed);
      } else {
        reply.merge_patch(json::parse(mutation.reply));
      }
      const auto status = storage::check_volume(of_, part, reply.dump());
      ASSERT_FALSE(status.has_value()) << field_name(mutation.field);
      EXPECT_THAT(status.error().message(), HasSubstr(std::string(field_name(mutation.field)) + ": expected "));
    }
  }
}

TEST_F(VolumeMutationTest, TakesOptionsAsASetWithoutDuplicates) {
  json reply = made_of(json::parse(storage::create_request(of_, Part::kWork)));
  const auto with = [&](const std::string& options) {
    json changed = reply;
    changed["Options"]["o"] = options;
    return storage::check_volume(of_, Part::kWork, changed.dump()).has_value();
  };
  // 10,000 bytes are three pages.
  const std::string good = "nosuid,nodev,size=12288,nr_inodes=50,mode=0755,uid=10001,gid=10001";
  EXPECT_TRUE(with(good));
  EXPECT_TRUE(with("gid=10001,nodev,size=12288,nr_inodes=50,mode=0755,uid=10001,nosuid"));
  for (const char* more : {",size=12288", ",size=0", ",suid", ",exec", ","}) EXPECT_FALSE(with(good + more)) << more;
  EXPECT_FALSE(with("nosuid,nodev,size=10000,nr_inodes=50,mode=0755,uid=10001,gid=10001"));
}

// A volume of that name that is another's: the engine answers a create with it, and it is refused and left alone.
TEST_F(VolumeMutationTest, LeavesAnothersVolumeOfThatNameAlone) {
  const std::string name = of_.work.name;
  ASSERT_TRUE(require(engine().post("/volumes/create", json{{"Name", name}}.dump(), soon()), "create", "").has_value());
  TaskStorage planned = storage::plan_storage("00000000000000d1", "00000000000000d1fedcba9876543210", "clone",
                                              DockerWorld::get().image_id(), {10'000, 50, 1 << 20, 50});
  const auto image = tiers::docker::image::require_registered({{planned.image_id, DockerWorld::kImage}}, engine(),
                                                              planned.image_id, soon());
  ASSERT_TRUE(image.has_value()) << image.error().message();
  const auto made =
      storage::allocate(engine(), *image, planned, [](const TaskStorage&) -> base::Status { return {}; }, soon());
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().message(), HasSubstr("check the volume '" + name + "': "));
  EXPECT_TRUE(require(engine().ask("GET", "/volumes/" + name, soon()), "inspect", "").has_value());
  EXPECT_TRUE(require(engine().ask("DELETE", "/volumes/" + name, soon()), "remove", "").has_value());
}

TEST_F(VolumeMutationTest, AnAnswerThatIsNoneIsRefused) {
  for (const char* body : {"", "null", "[]", "{}", R"({"Options":7,"Labels":[1],"Mountpoint":3})"}) {
    EXPECT_FALSE(storage::check_volume(of_, Part::kWork, body).has_value()) << body;
  }
}

}  // namespace
}  // namespace belljar::testing
