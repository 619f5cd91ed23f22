#include "remote/ssh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace belljar::remote {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SentNames, AreThoseOfTheConfiguration) {
  EXPECT_THAT(sent_names("host far\nsendenv LANG\nsendenv LC_*\nport 22\n"), ElementsAre("LANG", "LC_*"));
  EXPECT_THAT(sent_names("host far\nport 22\n"), IsEmpty());
}

TEST(SentNames, AreAllWhereNothingIsKnown) {
  EXPECT_THAT(sent_names(""), ElementsAre("*"));
}

}  // namespace
}  // namespace belljar::remote
