#include "tiers/docker/image/setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace belljar::tiers::docker::image {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Lock lock_of() {
  const auto lock = read_lock(own_lock(), "own");
  EXPECT_TRUE(lock);
  return lock.value_or(Lock{});
}

// No registry's script, but the one that is needed.
TEST(SetupTest, RunsOneScriptAndNoOther) {
  const Lock lock = lock_of();
  const std::string script = setup_script(lock);
  EXPECT_THAT(script, HasSubstr("(cd /opt/belljar/agents/node_modules/@anthropic-ai/claude-code && "
                                "/usr/local/bin/node install.cjs)"));
  EXPECT_EQ(script.find("/usr/local/bin/node "), script.rfind("/usr/local/bin/node "));
  EXPECT_THAT(script, Not(HasSubstr("npm")));
  int scripts = 0;
  for (const Package& package : lock.packages) scripts += install_script(package) != nullptr ? 1 : 0;
  EXPECT_EQ(scripts, 1);
  EXPECT_EQ(install_script({.name = "@anthropic-ai/claude-code-linux-x64"}), nullptr);
}

TEST(SetupTest, AVersionIsAWordOfTheFirstLine) {
  const std::vector<Tool> tools{{"node", "24.22.3"}, {"tool", "1.2"}, {"git", ""}};
  const auto fault = [&](const std::string& output) {
    const auto checked = check_versions(tools, output);
    return checked ? std::string() : checked.error().message();
  };
  EXPECT_EQ(fault("> node\nv24.22.3\n> tool\ntool 1.2 (x)\n> git\ngit version 2\n"), "");
  EXPECT_THAT(fault("> node\nv24.22.30\n> tool\n1.2\n> git\n2\n"),
              HasSubstr("check the image 'node': it calls itself 'v24.22.30', not 24.22.3, refusing"));
  EXPECT_THAT(fault("> node\nv24.22.3-rc\n> tool\n1.2\n> git\n2\n"), HasSubstr("'node'"));
  EXPECT_THAT(fault("> node\nv24.22.3\n> tool\n11.2\n> git\n2\n"), HasSubstr("'tool'"));
  EXPECT_THAT(fault("> node\nv24.22.3\n> tool\n0\nlibrary 1.2\n> git\n2\n"), HasSubstr("'tool'"));
  EXPECT_THAT(fault("> node\nv24.22.3\n> tool\n1.2\n"), HasSubstr("'git'"));
  EXPECT_THAT(fault(""), HasSubstr("'node'"));
}

}  // namespace
}  // namespace belljar::tiers::docker::image
