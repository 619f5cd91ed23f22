#include <gtest/gtest.h>

#include <cstring>

#include "guest/config.h"
#include "guest/errno_names.h"
#include "guest/mountinfo.h"
#include "guest/protocol.h"

namespace belljar::guest {
namespace {

// As the C library of the tests has them, but for the names that its headers do not know.
TEST(ErrnoNames, AreTheLibrarys) {
  for (int code = -1; code < 4096; ++code) {
    const char* ours = errno_name(code);
    const char* theirs = code == 0 ? nullptr : ::strerrorname_np(code);
    EXPECT_STREQ(ours, theirs) << code;
  }
}

TEST(Config, ComesBackAsItWent) {
  Config config;
  config.uid = 1000;
  config.proxy_port = 61080;
  config.terminal = true;
  config.scratch_bytes = uint64_t{1} << 40U;
  config.host_namespaces = {1, 2, 3};
  config.program = "/bin/sh";
  config.arguments = {"sh", "-c", ""};
  config.environment = {std::string_view("A=\n")};
  config.mounts = {{"/usr", false, false, true, false}, {"/dev/null", false, true, false, true}};
  const std::string bytes = encode(config);
  Config back;
  ASSERT_TRUE(decode(bytes, back));
  EXPECT_EQ(back.uid, 1000U);
  EXPECT_EQ(back.proxy_port, 61080);
  EXPECT_TRUE(back.terminal);
  EXPECT_EQ(back.scratch_bytes, config.scratch_bytes);
  EXPECT_EQ(back.host_namespaces, config.host_namespaces);
  EXPECT_EQ(back.arguments, config.arguments);
  EXPECT_EQ(back.environment, config.environment);
  ASSERT_EQ(back.mounts.size(), 2U);
  EXPECT_EQ(back.mounts[1].path, "/dev/null");
  EXPECT_TRUE(back.mounts[1].device);
  EXPECT_EQ(back.program.data()[back.program.size()], '\0');
}

TEST(Config, RefusesWhatIsCutOrLonger) {
  Config config;
  config.arguments = {"sh"};
  const std::string bytes = encode(config);
  Config back;
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode(std::string_view(bytes).substr(0, size), back)) << size;
  }
  EXPECT_FALSE(decode(bytes + "x", back));
}

TEST(Mountinfo, UndoesEscapesAndFindsTypeBehindTags) {
  const std::string text =
      "36 35 98:0 /mnt1 /a\\040b\\134c rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n"
      "37 35 0:5 / /p ro,nosuid - tmpfs tmpfs rw\n"
      "broken line\n";
  const auto entries = parse_mountinfo(text);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].path, "/a b\\c");
  EXPECT_EQ(entries[0].type, "ext3");
  EXPECT_TRUE(entries[1].has("ro"));
  EXPECT_FALSE(entries[1].has("r"));
  EXPECT_EQ(entries[2].path, "");
}

TEST(Check, EveryOneHasAName) {
  for (uint32_t i = 1; i < static_cast<uint32_t>(Check::kCount); ++i) {
    EXPECT_STRNE(check_name(static_cast<Check>(i)), "unknown");
    EXPECT_STRNE(check_name(static_cast<Check>(i)), "");
  }
}

}  // namespace
}  // namespace belljar::guest
