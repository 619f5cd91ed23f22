// Attempts of tasks: claimed once, and known ever after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/temp_tree.h"
#include "store/store.h"

namespace belljar::store {
namespace {

using ::testing::HasSubstr;

class AttemptsTest : public ::testing::Test {
 protected:
  const base::TempTree tree_;
  const std::string folder_ = tree_.path();
};

TEST_F(AttemptsTest, AnIdIsClaimedOnceByWhoever) {
  {
    const auto store = Store::open(folder_);
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->claim_attempt("one", std::string("a\0b", 3)));
  }
  const auto store = Store::open(folder_);
  ASSERT_TRUE(store);
  for (const char* request : {"a\0b", "another"}) {
    const auto again = store->claim_attempt("one", request);
    ASSERT_FALSE(again);
    EXPECT_THAT(again.error().message(), HasSubstr("'one': this attempt was captured before, refusing"));
  }
  EXPECT_EQ(store->attempt("one").value(), std::string("a\0b", 3));
  EXPECT_FALSE(store->attempt("two").value().has_value());
  EXPECT_TRUE(store->claim_attempt("two", "b"));
}

}  // namespace
}  // namespace belljar::store
