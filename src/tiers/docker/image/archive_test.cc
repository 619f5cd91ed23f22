#include "tiers/docker/image/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/io.h"
#include "base/temp_tree.h"
#include "tiers/docker/image/digest.h"

namespace belljar::tiers::docker::image {
namespace {

using ::testing::HasSubstr;

std::string digest_of(std::string_view text) {
  Integrity integrity;
  integrity.add(text);
  return integrity.finish();
}

class ArchiveTest : public ::testing::Test {
 protected:
  ArchiveTest() {
    std::filesystem::create_directory(folder_ + "/in");
    std::filesystem::create_directory(folder_ + "/out");
    lock_.packages = {{.name = "one", .version = "1", .integrity = digest_of("first")},
                      {.name = "two", .version = "2", .integrity = digest_of(std::string(100'000, 'x'))},
                      {.name = "one", .version = "1", .integrity = digest_of("first")}};
  }
  void put(const std::string& name, std::string_view text) const { std::ofstream(folder_ + "/in/" + name) << text; }
  base::Result<Archive> make() const {
    return make_archive(lock_, "echo hi\n", folder_ + "/in", folder_, base::Deadline::after(std::chrono::minutes(1)));
  }
  // What tar(1) makes of it.
  std::string unpacked(const std::string& name) const {
    const auto text = base::read_file(folder_ + "/out/belljar-build/" + name);
    return text ? *text : text.error().message();
  }

  const base::TempTree tree_;
  const std::string folder_ = tree_.path();
  Lock lock_;
};

TEST_F(ArchiveTest, HoldsWhatTheLockNamesWhateverItIsCalled) {
  put("a.tgz", "unwanted");
  put("b.tgz", std::string(100'000, 'x'));
  put("c.tgz", "first");
  put("d.tgz", "first");
  put("e.txt", "first");
  const auto archive = make();
  ASSERT_TRUE(archive) << archive.error().message();
  EXPECT_EQ(archive->bytes % 512, 0U);
  const std::string command = "tar -xf /proc/" + std::to_string(::getpid()) + "/fd/" +
                              std::to_string(archive->file.get()) + " -C " + folder_ + "/out && ls " + folder_ +
                              "/out/belljar-build | wc -l | grep -qx 3";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(unpacked("setup.sh"), "echo hi\n");
  EXPECT_EQ(unpacked("0.tgz"), "first");
  EXPECT_EQ(unpacked("1.tgz"), std::string(100'000, 'x'));
  EXPECT_EQ(archive_number(lock_, 2), 0U) << "one archive for two places";
}

TEST_F(ArchiveTest, OneByteLessIsAnotherPackage) {
  put("b.tgz", std::string(99'999, 'x'));
  put("c.tgz", "first");
  const auto archive = make();
  ASSERT_FALSE(archive);
  EXPECT_THAT(archive.error().message(), HasSubstr("nothing there is two 2 by its digest, refusing (npm pack two@2)"));
}

TEST_F(ArchiveTest, WhatIsNoFileIsRefused) {
  put("c.tgz", "first");
  ASSERT_EQ(::mkfifo((folder_ + "/in/b.tgz").c_str(), 0600), 0);
  const auto archive = make();
  ASSERT_FALSE(archive);
  EXPECT_THAT(archive.error().message(), HasSubstr("b.tgz': it is no file"));
}

}  // namespace
}  // namespace belljar::tiers::docker::image
