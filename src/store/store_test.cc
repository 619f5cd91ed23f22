#include "store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temp_tree.h"

namespace belljar::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The default of the nearest folder as `FOLDER: POLICY`, or why there is none.
std::string nearest(const base::Result<Store>& store, const std::string& folder) {
  if (!store) return store.error().message();
  const auto project = store->project_of(folder);
  if (!project) return project.error().message();
  return project->has_value() ? (*project)->folder + ": " + (*project)->policy : "none";
}

base::Result<Store> open_existing(const std::string& state) {
  auto store = Store::open_existing(state);
  if (!store) return std::unexpected(store.error());
  if (!store->has_value()) return base::refuse("open the store", state, "there is none");
  return std::move(**store);
}

class StoreTest : public ::testing::Test {
 protected:
  const base::TempTree tree_;
  const std::string folder_ = tree_.path();
  const std::string state_ = tree_.at("state/belljar");
};

TEST_F(StoreTest, IsNotMadeByLooking) {
  const auto store = Store::open_existing(state_);
  ASSERT_TRUE(store) << store.error().message();
  EXPECT_FALSE(*store);
  EXPECT_FALSE(std::filesystem::exists(state_));
}

TEST_F(StoreTest, GivesBackEveryByteAfterItWasClosed) {
  const std::string folder = std::string("/with\nnewline and \xff byte");
  const std::string text = std::string("{\"a\": \"\0\"}", 10) + "\xc3\xa4";
  ASSERT_TRUE(Store::open(state_)->set_project({folder, text}));
  EXPECT_EQ(nearest(open_existing(state_), folder + "/below/it"), folder + ": " + text);
}

TEST_F(StoreTest, TheNearestFolderCountsAndTheLastWord) {
  const auto store = Store::open(state_);
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->set_project({"/a", "1"}));
  ASSERT_TRUE(store->set_project({"/a/b", "2"}));
  ASSERT_TRUE(store->set_project({"/a/b", "3"}));
  EXPECT_EQ(nearest(store, "/a/b/c"), "/a/b: 3");
  EXPECT_EQ(nearest(store, "/a/bb"), "/a: 1");
  EXPECT_EQ(nearest(store, "/"), "none");
  EXPECT_TRUE(store->remove_project("/a/b").value());
  EXPECT_FALSE(store->remove_project("/a/b").value());
  EXPECT_EQ(nearest(store, "/a/b/c"), "/a: 1");
  EXPECT_EQ(store->projects()->size(), 1U);
}

TEST_F(StoreTest, TrustsTheseBytesInThisFolderOnly) {
  const auto store = Store::open(state_);
  ASSERT_TRUE(store);
  const FolderId folder{"/work", 7, 11};
  const std::vector<PolicyFile> files{{"/work/.belljar.toml", "one"}, {"/work/two.toml", "two"}};
  EXPECT_EQ(store->judge(folder, files).value(), Trust::kNever);
  ASSERT_TRUE(store->trust(folder, files));
  EXPECT_EQ(store->judge(folder, files).value(), Trust::kTrusted);
  EXPECT_EQ(store->judge({"/work", 7, 12}, files).value(), Trust::kOtherFolder);
  EXPECT_EQ(store->judge({"/work", 8, 11}, files).value(), Trust::kOtherFolder);
  EXPECT_EQ(store->judge({"/other", 7, 11}, files).value(), Trust::kNever);
  for (const auto& changed : {std::vector<PolicyFile>{{"/work/.belljar.toml", "one"}},
                              {{"/work/.belljar.toml", "one"}, {"/work/two.toml", "Two"}},
                              {{"/work/.belljar.toml", "one"}, {"/work/three.toml", "two"}},
                              {{"/work/.belljar.toml", "one"}, {"/work/two.toml", "two"}, {"/x", ""}}}) {
    EXPECT_EQ(store->judge(folder, changed).value(), Trust::kOtherContent);
  }
  // Trusted anew, the old bytes count no more.
  ASSERT_TRUE(store->trust(folder, {{"/work/.belljar.toml", "new"}}));
  EXPECT_EQ(store->judge(folder, files).value(), Trust::kOtherContent);
  EXPECT_THAT(store->trusted_folders().value(), ElementsAre("/work"));
  EXPECT_TRUE(store->distrust("/work").value());
  EXPECT_EQ(store->judge(folder, {{"/work/.belljar.toml", "new"}}).value(), Trust::kNever);
  EXPECT_THAT(store->trusted_folders().value(), IsEmpty());
}

TEST_F(StoreTest, IsReadByItsOwnerOnly) {
  ASSERT_TRUE(Store::open(state_));
  struct stat found{};
  ASSERT_EQ(::stat(state_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0700U);
  ASSERT_EQ(::stat((state_ + "/belljar.db").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0600U);
}

TEST_F(StoreTest, RefusesAFolderThatOthersWriteTo) {
  ASSERT_TRUE(Store::open(state_));
  ASSERT_EQ(::chmod(state_.c_str(), 0770), 0);
  const auto store = Store::open_existing(state_);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message(), HasSubstr("others could have written it"));
  EXPECT_FALSE(Store::open(state_));
}

TEST_F(StoreTest, RefusesALinkInItsPlace) {
  std::filesystem::create_directories(state_);
  std::filesystem::permissions(state_, std::filesystem::perms::owner_all);
  std::ofstream(folder_ + "/elsewhere") << "";
  std::filesystem::create_symlink(folder_ + "/elsewhere", state_ + "/belljar.db");
  EXPECT_FALSE(Store::open(state_));
  EXPECT_FALSE(Store::open_existing(state_));
}

TEST_F(StoreTest, RefusesWhatIsNoStoreAndSaysWhatToDo) {
  ASSERT_TRUE(Store::open(state_));
  std::ofstream(state_ + "/belljar.db") << std::string(4096, 'x');
  const auto store = Store::open_existing(state_);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message(), HasSubstr("move the file away"));
}

TEST_F(StoreTest, RefusesAStoreOfALaterVersion) {
  ASSERT_TRUE(Store::open(state_));
  const auto database = Database::open(state_ + "/belljar.db", Database::Access::kWrite);
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->execute("PRAGMA user_version = 1000"));
  const auto store = Store::open_existing(state_);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message(), HasSubstr("a newer belljar made it"));
}

// The first version's file, as that version made it: later ones must read it.
TEST_F(StoreTest, ReadsTheFirstVersion) {
  ASSERT_TRUE(Store::open(state_));
  std::filesystem::remove(state_ + "/belljar.db");
  std::ofstream(state_ + "/belljar.db") << "";
  const auto database = Database::open(state_ + "/belljar.db", Database::Access::kWrite);
  ASSERT_TRUE(database->execute(
      "CREATE TABLE project (folder BLOB PRIMARY KEY, policy BLOB NOT NULL) WITHOUT ROWID;"
      "CREATE TABLE trust (folder BLOB PRIMARY KEY, device INTEGER NOT NULL, inode INTEGER NOT NULL) WITHOUT ROWID;"
      "CREATE TABLE trusted_file (folder BLOB NOT NULL, place INTEGER NOT NULL, path BLOB NOT NULL, text BLOB NOT NULL,"
      " PRIMARY KEY (folder, place)) WITHOUT ROWID;"
      "INSERT INTO project VALUES (x'2f61', x'7b7d');"
      "INSERT INTO trust VALUES (x'2f61', 1, 2); INSERT INTO trusted_file VALUES (x'2f61', 0, x'2f62', x'63');"
      "PRAGMA user_version = 1"));
  const auto store = open_existing(state_);
  EXPECT_EQ(nearest(store, "/a"), "/a: {}");
  ASSERT_TRUE(store);
  EXPECT_EQ(store->judge({"/a", 1, 2}, {{"/b", "c"}}).value(), Trust::kTrusted);
}

}  // namespace
}  // namespace belljar::store
