#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temp_tree.h"
#include "policy/load.h"
#include "policy/parse.h"
#include "policy/show.h"
#include "store/database.h"
#include "store/store.h"

namespace belljar::store {
namespace {

using ::testing::HasSubstr;

class LaunchesTest : public ::testing::Test {
 protected:
  // A store as an earlier version left it.
  void make(const std::string& sql) const {
    std::ofstream(folder_ + "/belljar.db").close();
    const auto database = Database::open(folder_ + "/belljar.db", Database::Access::kWrite);
    ASSERT_TRUE(database) << database.error().message();
    const auto made = database->execute(sql);
    ASSERT_TRUE(made) << made.error().message();
  }

  [[nodiscard]] std::string kept(const std::string& id) const {
    const auto store = Store::open_existing(folder_);
    if (!store) return store.error().message();
    if (!*store) return "no store";
    const auto launch = (*store)->launch(id);
    if (!launch) return launch.error().message();
    return *launch ? (*launch)->policy : "none";
  }

  const base::TempTree tree_;
  const std::string folder_ = tree_.path();
};

constexpr const char* kVersion1 =
    "CREATE TABLE project (folder BLOB PRIMARY KEY, policy BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE trust (folder BLOB PRIMARY KEY, device INTEGER NOT NULL, inode INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE trusted_file (folder BLOB NOT NULL, place INTEGER NOT NULL, path BLOB NOT NULL, text BLOB NOT NULL,"
    "  PRIMARY KEY (folder, place)) WITHOUT ROWID;"
    "INSERT INTO project VALUES (CAST('/work' AS BLOB), CAST('{\"git\": \"write\"}' AS BLOB));"
    "PRAGMA user_version = 1;";

// The first version that kept launches, with the bytes that it wrote for one.
constexpr const char* kVersion2 =
    "CREATE TABLE launch (number INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE, schema INTEGER NOT NULL,"
    "  folder BLOB NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, policy BLOB NOT NULL,"
    "  chdir BLOB NOT NULL);"
    "CREATE TABLE launch_word (launch INTEGER NOT NULL REFERENCES launch (number), kind INTEGER NOT NULL,"
    "  place INTEGER NOT NULL, text BLOB NOT NULL, PRIMARY KEY (launch, kind, place)) WITHOUT ROWID;"
    "CREATE TABLE target (name BLOB PRIMARY KEY, facts BLOB NOT NULL) WITHOUT ROWID;"
    "INSERT INTO launch VALUES (7, CAST('00112233aabbccdd' AS BLOB), 1, CAST('/work' AS BLOB), 5, 9,"
    "  CAST('{\n  \"git\": \"read\",\n  \"isolation\": {\n    \"mode\": \"jail\",\n    \"network\": \"deny\",\n"
    "    \"allow_hosts\": [\n      \"a.test\"\n    ]\n  },\n  \"files\": {\n    \"home\": \"agent\",\n"
    "    \"toolchains\": \"auto\"\n  },\n  \"terminal\": {\n    \"clipboard\": \"deny\"\n  }\n}\n' AS BLOB),"
    "  CAST('' AS BLOB));"
    "INSERT INTO launch_word VALUES (7, 0, 0, CAST('sh' AS BLOB)), (7, 1, 0, CAST('KEY' AS BLOB));"
    "INSERT INTO launch VALUES (8, CAST('ffff' AS BLOB), 99, CAST('/' AS BLOB), 0, 0, CAST('?' AS BLOB),"
    "  CAST('' AS BLOB));"
    "PRAGMA user_version = 2;";

TEST_F(LaunchesTest, AStoreWithoutThemIsBroughtUp) {
  make(kVersion1);
  EXPECT_EQ(kept("0123"), "none");
  const auto store = Store::open(folder_);
  ASSERT_TRUE(store) << store.error().message();
  EXPECT_EQ(store->project_of("/work").value()->policy, "{\"git\": \"write\"}");
}

TEST_F(LaunchesTest, ARecordOfAnEarlierVersionStillLoads) {
  make(std::string(kVersion1) + kVersion2);
  const auto store = Store::open_existing(folder_);
  ASSERT_TRUE(store && *store);
  const auto launch = (*store)->launch("00112233aabbccdd");
  ASSERT_TRUE(launch && *launch);
  EXPECT_EQ((*launch)->folder, (FolderId{"/work", 5, 9}));
  EXPECT_EQ((*launch)->command, std::vector<std::string>{"sh"});
  EXPECT_EQ((*launch)->asked_env, std::vector<std::string>{"KEY"});
  const auto layer = policy::parse_policy((*launch)->policy, "launch");
  ASSERT_TRUE(layer) << layer.error().message();
  const auto policy = policy::load({*layer}, std::nullopt, {});
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_EQ(policy::show_json(*policy), (*launch)->policy);
  EXPECT_THAT(kept("ffff"), HasSubstr("a newer belljar kept it, refusing"));
}

TEST_F(LaunchesTest, TargetsAreRemembered) {
  const auto store = Store::open(folder_);
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->remember_target("ssh:a", "one"));
  ASSERT_TRUE(store->remember_target("ssh:a", "two"));
  EXPECT_EQ(store->target("ssh:a").value(), "two");
  EXPECT_EQ(store->target("ssh:b").value(), std::nullopt);
}

}  // namespace
}  // namespace belljar::store
