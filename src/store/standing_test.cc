#include "store/standing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temp_tree.h"
#include "policy/load.h"

namespace belljar::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StandingTest : public ::testing::Test {
 protected:
  StandingTest() {
    places_ = {root_ + "/state", root_ + "/config"};
    work_ = root_ + "/work/sub";
    std::filesystem::create_directories(work_);
    std::filesystem::create_directories(places_.config);
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(root_ + "/" + name) << text; }

  void trust() const {
    const auto file = read_project_file(root_ + "/work/.belljar.toml");
    ASSERT_TRUE(file) << file.error().message();
    ASSERT_TRUE(Store::open(places_.state)->trust(file->folder, file->files));
  }

  // The hosts that a launch in the folder may reach beyond the agent's.
  std::vector<std::string> hosts() const {
    const auto standing = gather_standing(places_, work_);
    if (!standing) return {standing.error().message()};
    const auto policy = policy::load(standing->layers, std::nullopt, {});
    if (!policy) return {policy.error().message()};
    std::vector<std::string> out;
    for (const auto& rule : policy->isolation.allow_hosts) out.push_back(rule.pattern);
    return out;
  }

  const base::TempTree tree_;
  const std::string root_ = tree_.path();
  std::string work_;
  Places places_;
};

constexpr const char* kHost = "[isolation]\nallow_hosts = [\"";

TEST_F(StandingTest, NothingStandsByItself) {
  const auto standing = gather_standing(places_, work_);
  ASSERT_TRUE(standing);
  EXPECT_THAT(standing->layers, IsEmpty());
  EXPECT_THAT(standing->notes, IsEmpty());
  EXPECT_EQ(standing->sources.size(), 3U);
}

TEST_F(StandingTest, TheLayersHaveTheirOrder) {
  write("config/policy.toml", std::string(kHost) + "user.test\"]\n[limits]\nwall = 1");
  ASSERT_TRUE(
      Store::open(places_.state)
          ->set_project({root_ + "/work",
                         R"({"isolation": {"allow_hosts": ["project.test"]}, "limits": {"wall": 2, "pids": 20}})"}));
  write("work/.belljar.toml", std::string(kHost) + "file.test\"]\n[limits]\nwall = 3");
  trust();
  EXPECT_THAT(hosts(), ElementsAre("user.test", "project.test", "file.test"));
  const auto policy = policy::load(gather_standing(places_, work_)->layers, std::nullopt, {});
  EXPECT_EQ(policy->limits.wall_seconds, 3U);
  EXPECT_EQ(policy->limits.pids, 20U);
}

TEST_F(StandingTest, AFileNobodyTrustsIsLeftOutWithANote) {
  write("work/.belljar.toml", std::string(kHost) + "evil.test\"]");
  EXPECT_THAT(hosts(), IsEmpty());
  EXPECT_THAT(gather_standing(places_, work_)->notes, ElementsAre(HasSubstr("nobody has trusted it")));
  trust();
  EXPECT_THAT(hosts(), ElementsAre("evil.test"));
  EXPECT_THAT(gather_standing(places_, work_)->notes, IsEmpty());
}

TEST_F(StandingTest, AChangedFileCountsNoMore) {
  write("work/.belljar.toml", std::string(kHost) + "good.test\"]");
  trust();
  write("work/.belljar.toml", std::string(kHost) + "evil.test\"]");
  EXPECT_THAT(hosts(), IsEmpty());
  EXPECT_THAT(gather_standing(places_, work_)->notes, ElementsAre(HasSubstr("has changed since")));
}

TEST_F(StandingTest, AChangedFileThatItExtendsCountsNoMore) {
  write("work/.belljar.toml", "extends = [\"./more.toml\"]");
  write("work/more.toml", std::string(kHost) + "good.test\"]");
  trust();
  EXPECT_THAT(hosts(), ElementsAre("good.test"));
  write("work/more.toml", std::string(kHost) + "evil.test\"]");
  EXPECT_THAT(hosts(), IsEmpty());
}

TEST_F(StandingTest, TheSameFileInAnotherFolderAtThatPathCountsNoMore) {
  write("work/.belljar.toml", std::string(kHost) + "good.test\"]");
  trust();
  std::filesystem::rename(root_ + "/work", root_ + "/old");
  std::filesystem::create_directories(work_);
  write("work/.belljar.toml", std::string(kHost) + "good.test\"]");
  EXPECT_THAT(hosts(), IsEmpty());
  EXPECT_THAT(gather_standing(places_, work_)->notes, ElementsAre(HasSubstr("another folder stands there")));
}

TEST_F(StandingTest, ALinkOrABrokenFileIsNotUsedAndStopsNothing) {
  write("elsewhere.toml", std::string(kHost) + "evil.test\"]");
  std::filesystem::create_symlink(root_ + "/elsewhere.toml", root_ + "/work/.belljar.toml");
  EXPECT_THAT(hosts(), IsEmpty());
  std::filesystem::remove(root_ + "/work/.belljar.toml");
  write("work/.belljar.toml", "mod = ");
  EXPECT_THAT(hosts(), IsEmpty());
  EXPECT_THAT(gather_standing(places_, work_)->notes, ElementsAre(HasSubstr(".belljar.toml:1")));
}

TEST_F(StandingTest, ABrokenDefaultOfThePersonsOwnIsAnError) {
  write("config/policy.toml", "mod = 1");
  EXPECT_THAT(hosts(), ElementsAre(HasSubstr("unknown key 'mod'")));
}

TEST(Places, FollowTheBaseDirectories) {
  EXPECT_EQ(places_of({{"HOME", "/home/a"}}).state, "/home/a/.local/state/belljar");
  EXPECT_EQ(places_of({{"HOME", "/home/a"}, {"XDG_STATE_HOME", "/s/"}}).state, "/s/belljar");
  // The specification has relative ones ignored.
  EXPECT_EQ(places_of({{"HOME", "/home/a"}, {"XDG_CONFIG_HOME", "rel"}}).config, "/home/a/.config/belljar");
  EXPECT_EQ(places_of({}).state, "");
}

}  // namespace
}  // namespace belljar::store
