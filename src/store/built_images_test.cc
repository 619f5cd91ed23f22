#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/temp_tree.h"
#include "store/database.h"
#include "store/store.h"

namespace belljar::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BuiltImagesTest : public ::testing::Test {
 protected:
  const base::TempTree tree_;
  const std::string folder_ = tree_.path();
};

TEST_F(BuiltImagesTest, AreGivenBackTheNewestFirst) {
  const BuiltImage first{"sha256:1", "a:1", "/run/engine\xff", "node 1\nclaude 2\n", 1};
  const BuiltImage second{"sha256:0", "a:2", "/run/engine", "", 2};
  const auto store = Store::open(folder_);
  ASSERT_TRUE(store) << store.error().message();
  EXPECT_THAT(store->built_images().value(), IsEmpty());
  ASSERT_TRUE(store->register_image(first));
  ASSERT_TRUE(store->register_image(second));
  const auto again = Store::open_existing(folder_);
  ASSERT_TRUE(again && *again);
  EXPECT_THAT((*again)->built_images().value(), ElementsAre(second, first));
}

TEST_F(BuiltImagesTest, TheSameContentIsOneImageAndGoesOnce) {
  const auto store = Store::open(folder_);
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->register_image({"sha256:1", "a:1", "/e", "", 1}));
  const BuiltImage later{"sha256:1", "a:2", "/e", "", 2};
  ASSERT_TRUE(store->register_image(later));
  EXPECT_THAT(store->built_images().value(), ElementsAre(later));
  EXPECT_TRUE(store->unregister_image("sha256:1").value());
  EXPECT_FALSE(store->unregister_image("sha256:1").value());
  EXPECT_THAT(Store::open(folder_)->built_images().value(), IsEmpty());
}

// A store that knew no images.
TEST_F(BuiltImagesTest, AnEarlierStoreIsBroughtUp) {
  {
    ASSERT_TRUE(Store::open(folder_));
  }
  {
    const auto database = Database::open(folder_ + "/belljar.db", Database::Access::kWrite);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute(
        "DROP TABLE built_image; DROP TABLE attempt; DROP TABLE task; DROP TABLE task_pool; PRAGMA user_version = 3"));
  }
  const auto store = Store::open_existing(folder_);
  ASSERT_TRUE(store && *store) << store.error().message();
  EXPECT_THAT((*store)->built_images().value(), IsEmpty());
}

}  // namespace
}  // namespace belljar::store
