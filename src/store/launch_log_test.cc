#include "store/launch_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/pack.h"
#include "base/temp_tree.h"
#include "store/database.h"

namespace belljar::store {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class LaunchLogTest : public ::testing::Test {
 protected:
  [[nodiscard]] base::Status keep(const std::string& id, const std::string& policy) const {
    return keep_launch(state_, {id, {}, policy, {"sh"}, "", {}});
  }
  // The policy of the launch, or why there is none.
  [[nodiscard]] std::string kept(const std::string& id) const {
    const auto launch = kept_launch(state_, id);
    if (!launch) return launch.error().message();
    return *launch ? (*launch)->policy : "none";
  }
  [[nodiscard]] std::string bytes() const {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(file_, std::ios::binary) << bytes; }

  base::TempTree tree_;
  std::string state_ = tree_.at("state/belljar");
  std::string file_ = state_ + "/launches";
};

TEST_F(LaunchLogTest, GivesBackEveryByte) {
  const Launch launch{"0123456789abcdef",
                      {std::string("/with\nnewline and \xff byte"), ~uint64_t{0}, 1},
                      std::string("{\"a\": \"\0\"}", 10) + "\xc3\xa4",
                      {"claude", "", "--x=\xff y", std::string("a\0b", 3), "\x01launch\n"},
                      "/work/below",
                      {"API_KEY", "B"},
                      "~/there"};
  ASSERT_TRUE(keep_launch(state_, launch));
  ASSERT_TRUE(keep("other", "text"));
  EXPECT_EQ(kept_launch(state_, launch.id).value(), launch);
  EXPECT_EQ(kept("other"), "text");
  EXPECT_EQ(kept("0123"), "none");
  EXPECT_FALSE(fs::exists(state_ + "/belljar.db")) << "a store that every launch would have to open";
}

TEST_F(LaunchLogTest, IsNotMadeByLooking) {
  EXPECT_EQ(kept("0123"), "none");
  EXPECT_FALSE(fs::exists(state_));
}

TEST_F(LaunchLogTest, IsTheOwnersAlone) {
  ASSERT_TRUE(keep("a", "text"));
  struct stat found{};
  ASSERT_EQ(::stat(file_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0600U);
  ::chmod(state_.c_str(), 0777);
  const auto refused = keep("b", "text");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("others could have written it, refusing"));
}

TEST_F(LaunchLogTest, ALinkInItsPlaceIsNotFollowed) {
  ASSERT_TRUE(keep("a", "text"));
  const std::string other = tree_.file("other", "");
  ASSERT_EQ(::unlink(file_.c_str()), 0);
  ASSERT_EQ(::symlink(other.c_str(), file_.c_str()), 0);
  EXPECT_FALSE(keep("b", "text"));
  EXPECT_EQ(fs::file_size(other), 0U);
  EXPECT_THAT(kept("a"), HasSubstr("Too many levels of symbolic links"));
}

TEST_F(LaunchLogTest, TheLastWordCountsAndTheOldestGo) {
  ASSERT_TRUE(keep("first", "1"));
  ASSERT_TRUE(keep("same", "1"));
  ASSERT_TRUE(keep("same", "2"));
  EXPECT_EQ(kept("same"), "2");
  const std::string full(kKeptLaunchBytes, 'x');
  ASSERT_TRUE(keep("full", full));
  EXPECT_EQ(kept("first"), "1");
  EXPECT_EQ(kept("full"), full);
  ASSERT_TRUE(keep("same", "3"));
  EXPECT_EQ(kept("same"), "3");
  ASSERT_TRUE(keep("full", full));
  EXPECT_EQ(kept("first"), "none");
  EXPECT_EQ(kept("same"), "3");
}

TEST_F(LaunchLogTest, WhatIsNotWholeIsPassedOver) {
  ASSERT_TRUE(keep("a", "text of a"));
  const std::string whole = bytes();
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    write(whole.substr(0, cut));
    EXPECT_EQ(kept("a"), "none") << cut;
    ASSERT_TRUE(keep("b", "text of b")) << cut;
    EXPECT_EQ(kept("b"), "text of b") << cut;
    // A block that never reached the disk reads as zeros.
    write(whole.substr(0, cut) + std::string(whole.size() - cut, '\0') + whole);
    EXPECT_EQ(kept("a"), "text of a") << cut;
  }
}

TEST_F(LaunchLogTest, WhatANewerVersionKeptIsRefusedByName) {
  std::string body;
  base::pack_text(body, "new");
  base::pack_number(body, 99);
  body += "whatever";
  std::string record = "\x01launch\n";
  base::pack_text(record, body);
  record += "\x01kept\n";
  ASSERT_TRUE(keep("old", "text"));
  write(bytes() + record);
  ASSERT_TRUE(keep("after", "text"));
  EXPECT_THAT(kept("new"), HasSubstr("a newer belljar kept it, refusing"));
  EXPECT_EQ(kept("old"), "text");
  EXPECT_EQ(kept("after"), "text");
}

TEST_F(LaunchLogTest, ManyAtOnceKeepTheirOwn) {
  constexpr int kProcesses = 8;
  constexpr int kEach = 40;
  for (int process = 0; process < kProcesses; ++process) {
    if (::fork() != 0) continue;
    bool good = true;
    for (int i = 0; i < kEach; ++i) {
      good = good && keep(std::to_string(process) + "-" + std::to_string(i), std::string(20000, 'x')).has_value();
    }
    ::_exit(good ? 0 : 1);
  }
  for (int process = 0; process < kProcesses; ++process) {
    int status = 0;
    ASSERT_GT(::wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  for (int process = 0; process < kProcesses; ++process) {
    EXPECT_EQ(kept(std::to_string(process) + "-" + std::to_string(kEach - 1)).size(), 20000U);
  }
}

TEST_F(LaunchLogTest, ThoseThatAnEarlierVersionKeptInTheStoreAreFound) {
  ASSERT_TRUE(Store::open(state_));
  const auto database = Database::open(state_ + "/belljar.db", Database::Access::kWrite);
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->execute(
      "INSERT INTO launch VALUES (7, CAST('0123' AS BLOB), 1, CAST('/work' AS BLOB), 5, 9, CAST('text' AS BLOB),"
      " CAST('' AS BLOB), CAST('' AS BLOB))"));
  EXPECT_EQ(kept("0123"), "text");
  ASSERT_TRUE(keep("other", "text"));
  EXPECT_EQ(kept("0123"), "text");
}

}  // namespace
}  // namespace belljar::store
