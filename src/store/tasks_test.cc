#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/temp_tree.h"
#include "store/store.h"

namespace belljar::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kMegabyte = 1 << 20;

class TasksTest : public ::testing::Test {
 protected:
  static Task task(const std::string& id, uint64_t megabytes) {
    return {.id = id,
            .project = "/p",
            .engine = "/e",
            .bytes = megabytes * kMegabyte,
            .clone = std::string("c\0c", 3),
            .storage = "s",
            .made = 7};
  }
  const base::TempTree tree_;
  const std::string folder_ = tree_.path();
};

TEST_F(TasksTest, AdmitsUpToTheCeilingAndNoFurther) {
  const auto store = Store::open(folder_ + "/state");
  ASSERT_TRUE(store.has_value());
  ASSERT_TRUE(store->admit_task(task("a", 60), 100 * kMegabyte).has_value());
  const auto refused = store->admit_task(task("b", 41), 100 * kMegabyte);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("admit the task 'b': it takes"));
  EXPECT_FALSE((*store->task("b")).has_value());
  EXPECT_TRUE(store->admit_task(task("b", 40), 100 * kMegabyte).has_value());
  EXPECT_FALSE(store->admit_task(task("c", UINT64_MAX / kMegabyte), 100 * kMegabyte).has_value());
  // What is removed is free again; a ceiling that was set counts.
  ASSERT_TRUE(store->remove_task("a").has_value());
  EXPECT_TRUE(store->admit_task(task("c", 60), 100 * kMegabyte).has_value());
  ASSERT_TRUE(store->set_pool(101 * kMegabyte).has_value());
  EXPECT_EQ(*store->pool(), 101 * kMegabyte);
  EXPECT_FALSE(store->admit_task(task("d", 2), 500 * kMegabyte).has_value());
  EXPECT_TRUE(store->admit_task(task("d", 1), 0).has_value());
}

TEST_F(TasksTest, KeepsWhatItIsGiven) {
  const auto store = Store::open(folder_ + "/state");
  ASSERT_TRUE(store.has_value());
  ASSERT_TRUE(store->admit_task(task("a", 1), kMegabyte).has_value());
  Task changed = task("a", 1);
  changed.state = TaskState::kReady;
  changed.storage = "more";
  ASSERT_TRUE(store->update_task(changed).has_value());
  const auto again = Store::open_existing(folder_ + "/state");
  ASSERT_TRUE(again.has_value() && again->has_value());
  EXPECT_THAT(*(*again)->tasks(), ElementsAre(changed));
  EXPECT_EQ((*(*again)->task("a"))->clone, std::string("c\0c", 3));
}

}  // namespace
}  // namespace belljar::store
