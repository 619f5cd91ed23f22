// The home as the work folder, by name only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

using ::testing::HasSubstr;

class AllowHomeTest : public ::testing::Test {
 protected:
  Output script(const std::string& folder, const std::string& text, const std::vector<std::string>& options) {
    Command command = sealed_script(folder, text, options);
    command.env = {{"HOME", home_.path()},
                   {"XDG_CONFIG_HOME", std::nullopt},
                   {"XDG_STATE_HOME", std::nullopt},
                   {"XDG_CACHE_HOME", std::nullopt}};
    return run(command);
  }
  TempDir home_;
};

TEST_F(AllowHomeTest, WithoutTheWordTheHomeAndWhatIsAroundItAreRefused) {
  for (const std::string& folder : {home_.path(), std::filesystem::path(home_.path()).parent_path().string()}) {
    const Output output = script(folder, "echo started", {});
    EXPECT_EQ(output.code, 125) << folder;
    EXPECT_EQ(output.out, "");
    EXPECT_THAT(output.err, HasSubstr("refusing"));
  }
  const Output root = script("/", "echo started", {"--allow-home"});
  EXPECT_EQ(root.code, 125);
  EXPECT_THAT(root.err, HasSubstr("root folder"));
}

TEST_F(AllowHomeTest, WithTheWordTheHomeIsThereAndBelljarsOwnIsNot) {
  write_file(home_ / ".ssh/id", "a key");
  write_file(home_ / ".config/belljar/policy.toml", "git = \"read\"\n");
  write_file(home_ / ".config/other/x", "other");
  const Output output = script(
      home_.path(),
      "cat .ssh/id; echo new >made; cat .config/belljar/policy.toml; echo git = '\"write\"' "
      ">.config/belljar/policy.toml; "
      "ls -A .local/state/belljar; ls -A .cache/belljar; mv .config gone; mv .local gone; rm -rf .config/belljar; "
      "mv .config/belljar x; mkdir -p .config/belljar; echo evil >.config/belljar/evil; cat .config/other/x; "
      "echo evil >.bashrc; echo more >.config/other/y; mv .config/other .config/moved",
      {"--allow-home"});
  EXPECT_EQ(output.out, "a keyother") << output.err;
  EXPECT_THAT(output.err, HasSubstr("allow_home = true"));
  EXPECT_EQ(read_text(home_ / "made"), "new\n");
  EXPECT_EQ(read_text(home_ / ".config/belljar/policy.toml"), "git = \"read\"\n");
  EXPECT_FALSE(std::filesystem::exists(home_ / ".config/belljar/evil"));
  EXPECT_FALSE(std::filesystem::exists(home_ / ".bashrc")) << "what shells obey is protected there too";
  EXPECT_EQ(read_text(home_ / ".config/moved/y"), "more\n");
}

}  // namespace
}  // namespace belljar::testing
