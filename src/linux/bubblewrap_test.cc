#include "linux/bubblewrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temp_tree.h"

namespace belljar::linux {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BubblewrapTest : public ::testing::Test {
 protected:
  // A program called bwrap that prints `text`.
  void write(const std::string& text, mode_t mode = 0755) const {
    std::ofstream(folder_ + "/bwrap") << "#!/bin/sh\necho '" << text << "'\n";
    ASSERT_EQ(::chmod((folder_ + "/bwrap").c_str(), mode), 0);
  }
  [[nodiscard]] Bubblewrap find() const { return find_bubblewrap(folder_); }

  const base::TempTree tree_;
  const std::string folder_ = tree_.path();
};

TEST(BubblewrapVersionTest, IsReadFromWhatItPrints) {
  struct Case {
    const char* text;
    bool good;
    BubblewrapVersion version;
  };
  for (const auto& [text, good, version] :
       {Case{"bubblewrap 0.8.0\n", true, {0, 8, 0}}, Case{"bubblewrap 0.13\n", true, {0, 13, 0}},
        Case{"bubblewrap 1.2.3", true, {1, 2, 3}}, Case{"bubblewrap 0.8.0.1\n", false, {}},
        Case{"bubblewrap 0.8.x\n", false, {}}, Case{"bubblewrap 8\n", false, {}}, Case{"bubblewrap \n", false, {}},
        Case{"bwrap 0.8.0\n", false, {}}, Case{"", false, {}}}) {
    BubblewrapVersion found;
    EXPECT_EQ(parse_bubblewrap_version(text, found), good) << text;
    EXPECT_EQ(found, version) << text;
  }
}

TEST_F(BubblewrapTest, IsFoundInPathWithItsVersion) {
  write("bubblewrap 0.8.0");
  const Bubblewrap found = find_bubblewrap("relative:/nowhere:" + folder_ + ":/usr/bin");
  EXPECT_EQ(found.path, folder_ + "/bwrap");
  EXPECT_EQ(to_text(found.version), "0.8.0");
  EXPECT_THAT(found.fault, IsEmpty());
  EXPECT_TRUE(found.follows_links());
}

TEST_F(BubblewrapTest, TheReleaseThatFollowsNoLinksIsKnownByItsVersion) {
  write("bubblewrap 0.11.9");
  EXPECT_TRUE(find().follows_links());
  write("bubblewrap 0.12.0");
  EXPECT_FALSE(find().follows_links());
  write("bubblewrap 0.13.1");
  EXPECT_FALSE(find().follows_links());
}

TEST_F(BubblewrapTest, IsRefusedWithTheReason) {
  EXPECT_THAT(find().fault, HasSubstr("no bwrap in PATH"));
  EXPECT_THAT(find().remedy, HasSubstr("apt-get install bubblewrap"));
  write("bubblewrap 0.7.0");
  EXPECT_THAT(find().fault, HasSubstr("bubblewrap 0.7.0, which cannot forbid namespaces inside"));
  write("something else");
  EXPECT_THAT(find().fault, HasSubstr("does not tell its version"));
  write("bubblewrap 0.8.0", 04755);
  EXPECT_THAT(find().fault, HasSubstr("set-uid"));
  write("bubblewrap 0.8.0", 0777);
  EXPECT_THAT(find().fault, HasSubstr("others could have written it"));
  write("bubblewrap 0.8.0", 0775);
  EXPECT_THAT(find().fault, HasSubstr("others could have written it"));
}

TEST(BubblewrapTrial, SaysWhatTheHostAllows) {
  const Bubblewrap found = find_bubblewrap("/usr/bin:/bin");
  ASSERT_THAT(found.fault, IsEmpty());
  EXPECT_EQ(try_bubblewrap(found), "");
}

TEST_F(BubblewrapTest, ATrialThatFailsSaysWhatTheProgramSaid) {
  std::ofstream(folder_ + "/bwrap") << "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n";
  ASSERT_EQ(::chmod((folder_ + "/bwrap").c_str(), 0755), 0);
  EXPECT_EQ(try_bubblewrap({folder_ + "/bwrap", {}, {}, {}}), "bwrap: No permissions to create new namespace");
}

TEST(BubblewrapRemedy, NamesWhatHelps) {
  EXPECT_THAT(bubblewrap_remedy("bwrap: No permissions to create new namespace, likely because ..."),
              HasSubstr("bwrap-userns-restrict"));
  EXPECT_THAT(bubblewrap_remedy("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"), HasSubstr("AppArmor"));
  EXPECT_THAT(bubblewrap_remedy("bwrap: Can't mount proc on /newroot/proc: Operation not permitted"),
              HasSubstr("unmasked /proc"));
  EXPECT_THAT(bubblewrap_remedy("bwrap: something"), HasSubstr("belljar doctor"));
}

TEST(AskProgram, HasNeitherInputNorEnvironment) {
  const Said said =
      ask_program({"/bin/sh", "-c", "cat; env | grep -v -e ^PWD= -e ^_= -e ^SHLVL=; echo err >&2; exit 3"});
  ASSERT_TRUE(WIFEXITED(said.status));
  EXPECT_EQ(WEXITSTATUS(said.status), 3);
  EXPECT_EQ(said.out, "");
  EXPECT_EQ(said.err, "err\n");
  EXPECT_EQ(ask_program({"/bin/sh", "-c", "yes"}).status, -1) << "too much is an end";
  EXPECT_EQ(WEXITSTATUS(ask_program({"/nowhere/program"}).status), 127);
}

}  // namespace
}  // namespace belljar::linux
