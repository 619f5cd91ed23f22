// A task's storage on a real engine: made, checked, filled to its ceilings, removed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "docker/world.h"
#include "support/git_repository.h"
#include "support/temp_dir.h"
#include "tiers/docker/engine_json.h"
#include "tiers/docker/storage/allocate.h"
#include "tiers/docker/storage/helpers.h"
#include "tiers/docker/storage/read_back.h"
#include "tiers/docker/storage/seed.h"
#include "tiers/docker/validate_json.h"

namespace belljar::testing {
namespace {

namespace storage = tiers::docker::storage;
using storage::TaskStorage;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using tiers::docker::Engine;

constexpr uint64_t kMegabyte = 1 << 20;

base::Deadline soon() {
  return base::Deadline::after(std::chrono::seconds(60));
}

class StorageTest : public ::testing::Test {
 protected:
  static const Engine& engine() { return DockerWorld::get().engine(); }

  // As if it had been built.
  static tiers::docker::image::RegisteredImage image() {
    auto out = tiers::docker::image::require_registered({{DockerWorld::get().image_id(), DockerWorld::kImage}},
                                                        engine(), DockerWorld::kImage, soon());
    EXPECT_TRUE(out.has_value()) << out.error().message();
    return std::move(*out);
  }
  static TaskStorage planned(const std::string& task) {
    return storage::plan_storage(task, task + "fedcba9876543210", "clone", DockerWorld::get().image_id(),
                                 {4 * kMegabyte - 1, 100, kMegabyte, 50});
  }
  storage::Record keep() {
    return [this](const TaskStorage& now) -> base::Status {
      recorded_.push_back(now);
      return {};
    };
  }
  void TearDown() override {
    for (const TaskStorage& one : recorded_) {
      EXPECT_THAT(storage::release(engine().socket(), one, false, soon()).unreleased, IsEmpty());
    }
  }
  static size_t left(const TaskStorage& one) {
    const std::string label = std::string(storage::kAllocationLabel) + "=" + one.allocation;
    return engine().containers_with(label, soon())->size() + engine().volumes_with(label, soon())->size();
  }
  std::vector<TaskStorage> recorded_;
};

TEST_F(StorageTest, IsMadeAndFoundAndRemoved) {
  const auto made = storage::allocate(engine(), image(), planned("00000000000000a1"), keep(), soon());
  ASSERT_TRUE(made.has_value()) << made.error().message();
  // Names before, ids after.
  ASSERT_THAT(recorded_, SizeIs(3));
  EXPECT_EQ(recorded_[0].work.mountpoint, "");
  EXPECT_EQ(recorded_[0].keeper_id, "");
  EXPECT_EQ(recorded_[2].keeper_id, made->keeper_id);
  EXPECT_EQ(made->work.bytes, 4 * kMegabyte);
  const auto again = storage::decode_storage(storage::encode(*made));
  ASSERT_TRUE(again.has_value());
  const auto found = storage::look_up(engine(), *again, soon());
  ASSERT_TRUE(found.has_value()) << found.error().message();
  EXPECT_EQ(found->git.mountpoint, made->git.mountpoint);
  EXPECT_TRUE(storage::check_unused(engine(), *found, soon()).has_value());
  EXPECT_EQ(left(*made), 3U);
  EXPECT_THAT(storage::release(engine().socket(), *made, false, soon()).unreleased, IsEmpty());
  EXPECT_EQ(left(*made), 0U);
  EXPECT_FALSE(storage::look_up(engine(), *again, soon()).has_value());
}

// A volume's content, by path; folders end in a slash.
class Content : public base::TarReader::Sink {
 public:
  base::Status on_entry(const base::TarEntry& entry) override {
    at_ = entry.path + (entry.kind == base::TarEntry::Kind::kFolder ? "/" : "");
    files[at_] = entry.kind == base::TarEntry::Kind::kLink ? "-> " + entry.target : "";
    modes[at_] = entry.mode;
    return {};
  }
  base::Status on_bytes(std::string_view bytes) override {
    files[at_] += bytes;
    return {};
  }
  base::Status on_end() override { return {}; }
  std::map<std::string, std::string> files;
  std::map<std::string, uint32_t> modes;

 private:
  std::string at_;
};

class SeedTest : public StorageTest {
 protected:
  SeedTest() {
    ::chmod(root_.path().c_str(), 0700);
    repository(root_ / "project");
    write_file(root_ / "project/sub/deep/more.txt", std::string(300'000, 'm'));
    write_file(root_ / "project/run.sh", "#!/bin/sh\ntouch /kept/work/ran\n");
    ::chmod((root_ / "project/run.sh").c_str(), 0755);
    std::filesystem::create_symlink("sub/deep", root_ / "project/link");
    git(root_ / "project", {"add", "--all"});
    git(root_ / "project", {"commit", "--quiet", "--message=more"});
  }
  base::Result<workspace::Clone> clone() { return workspace::Clone::make(root_ / "project", root_ / "clone", soon()); }
  base::Result<TaskStorage> allocate(const workspace::Clone& of, const std::string& task,
                                     const storage::Ceilings& ceilings) {
    return storage::allocate(engine(), image(),
                             storage::plan_storage(task, task + "0123456789abcdef", of.record().token,
                                                   DockerWorld::get().image_id(), ceilings),
                             keep(), soon());
  }
  static void read(const TaskStorage& of, storage::Part part, Content& out) {
    const auto status = storage::read_volume(engine(), of, part, out, soon());
    EXPECT_TRUE(status.has_value()) << status.error().message();
  }
  const TempDir root_;
};

TEST_F(SeedTest, FillsBothVolumesEachFromItsOwnStream) {
  const auto of = clone();
  ASSERT_TRUE(of.has_value()) << of.error().message();
  const auto made = allocate(*of, "00000000000000b1", {8 * kMegabyte, 100, 4 * kMegabyte, 200});
  ASSERT_TRUE(made.has_value()) << made.error().message();
  const auto seeded = storage::seed(engine(), image(), *made, *of, root_ / "streams", soon());
  ASSERT_TRUE(seeded.has_value()) << seeded.error().message();
  Content work;
  read(*made, storage::Part::kWork, work);
  EXPECT_EQ(work.files.at("sub/deep/more.txt"), std::string(300'000, 'm'));
  EXPECT_EQ(work.files.at("link"), "-> sub/deep");
  EXPECT_EQ(work.files.at(".git/"), "");
  EXPECT_EQ(work.modes.at("run.sh"), 0755U);
  EXPECT_EQ(work.files.contains("ran"), false);
  EXPECT_EQ(work.files.size(), 7U);
  Content metadata;
  read(*made, storage::Part::kGit, metadata);
  EXPECT_EQ(metadata.files.at("HEAD"), "ref: refs/heads/main\n");
  EXPECT_EQ(metadata.files.contains("code.cc"), false);
  // The seeder is gone, and its streams.
  EXPECT_EQ(left(*made), 3U);
  EXPECT_FALSE(std::filesystem::exists(root_ / "streams"));
}

TEST_F(SeedTest, RefusesAnotherClone) {
  const auto of = clone();
  ASSERT_TRUE(of.has_value());
  const auto other = workspace::Clone::make(root_ / "project", root_ / "other", soon());
  ASSERT_TRUE(other.has_value());
  const auto made = allocate(*of, "00000000000000b2", {8 * kMegabyte, 100, 4 * kMegabyte, 200});
  ASSERT_TRUE(made.has_value());
  const auto seeded = storage::seed(engine(), image(), *made, *other, root_ / "streams", soon());
  ASSERT_FALSE(seeded.has_value());
  EXPECT_THAT(seeded.error().message(), HasSubstr("it is bound to another clone, refusing"));
  // And one whose folder was replaced.
  std::filesystem::rename(root_ / "clone", root_ / "moved");
  std::filesystem::rename(root_ / "other", root_ / "clone");
  const auto replaced = storage::seed(engine(), image(), *made, *of, root_ / "streams", soon());
  ASSERT_FALSE(replaced.has_value());
  EXPECT_THAT(replaced.error().message(), HasSubstr("another folder stands there now, refusing"));
  Content work;
  read(*made, storage::Part::kWork, work);
  EXPECT_THAT(work.files, IsEmpty());
}

TEST_F(SeedTest, EndsWhenAVolumeIsTooSmall) {
  const auto of = clone();
  ASSERT_TRUE(of.has_value());
  for (const storage::Ceilings& ceilings :
       {storage::Ceilings{4096, 100, 4 * kMegabyte, 200}, storage::Ceilings{8 * kMegabyte, 3, 4 * kMegabyte, 200},
        storage::Ceilings{8 * kMegabyte, 100, 4096, 200}, storage::Ceilings{8 * kMegabyte, 100, 4 * kMegabyte, 5}}) {
    const auto made = allocate(*of, "00000000000000b3", ceilings);
    ASSERT_TRUE(made.has_value()) << made.error().message();
    const auto seeded = storage::seed(engine(), image(), *made, *of, root_ / "streams", soon());
    ASSERT_FALSE(seeded.has_value());
    EXPECT_THAT(seeded.error().message(),
                ::testing::AnyOf(HasSubstr("the seeder ended with"), HasSubstr("the seeder has stopped reading"),
                                 HasSubstr("the seeder has ended without")));
    EXPECT_EQ(left(*made), 3U);
    EXPECT_THAT(storage::release(engine().socket(), *made, false, soon()).unreleased, IsEmpty());
  }
}

TEST_F(SeedTest, IsLateAfterItsDeadline) {
  const auto of = clone();
  ASSERT_TRUE(of.has_value());
  const auto made = allocate(*of, "00000000000000b4", {8 * kMegabyte, 100, 4 * kMegabyte, 200});
  ASSERT_TRUE(made.has_value());
  // No engine makes and starts a container in the longer of these.
  for (const int milliseconds : {0, 50}) {
    const auto seeded = storage::seed(engine(), image(), *made, *of, root_ / "streams",
                                      base::Deadline::after(std::chrono::milliseconds(milliseconds)));
    EXPECT_FALSE(seeded.has_value()) << milliseconds;
    EXPECT_EQ(left(*made), 3U) << milliseconds;
  }
}

}  // namespace
}  // namespace belljar::testing
