#include "session/tool_secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/temp_tree.h"

namespace belljar::session {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class ToolSecretsTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return tree_.file(name, "secret\n"); }

  const base::TempTree tree_;
  const std::string root_ = tree_.path();
};

TEST_F(ToolSecretsTest, AreFoundFourLevelsDeep) {
  const std::string top = file("credentials.toml");
  const std::string deep = file("node/v20/etc/npmrc");
  file("node/v20/etc/deeper/npmrc");
  file("node/v20/lib/npmrc");
  file("settings.toml");
  const ToolSecrets found = find_tool_secrets({root_});
  EXPECT_THAT(found.files, UnorderedElementsAre(top, deep));
  EXPECT_THAT(found.unseen, IsEmpty());
}

TEST_F(ToolSecretsTest, FollowNoLink) {
  file("there/auth.json");
  std::filesystem::create_directory(root_ + "/here");
  std::filesystem::create_directory_symlink(root_ + "/there", root_ + "/here/link");
  EXPECT_THAT(find_tool_secrets({root_ + "/here"}).files, IsEmpty());
}

TEST_F(ToolSecretsTest, SayWhichFolderWasTooLargeAndLookIntoTheOthers) {
  for (const char* name : {"large/1", "large/2", "large/3"}) file(name);
  const std::string secret = file("small/.netrc");
  const ToolSecrets found = find_tool_secrets({root_ + "/large", root_ + "/small"}, 2);
  EXPECT_THAT(found.files, ElementsAre(secret));
  EXPECT_THAT(found.unseen, ElementsAre(root_ + "/large"));
  EXPECT_THAT(find_tool_secrets({root_ + "/large"}, 3).unseen, IsEmpty());
}

}  // namespace
}  // namespace belljar::session
