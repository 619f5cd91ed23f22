// Mode bwrap as a person meets it: what it refuses and says, and that nothing else is done in its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "support/belljar.h"
#include "support/temp_dir.h"

namespace belljar::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kWould = "or use mode = \"jail\"";

class BwrapTest : public ::testing::Test {
 protected:
  // As root the launch covers /tmp for bubblewrap, which runs as the guest's user: its program must lie elsewhere and
  // be that user's to execute.
  BwrapTest() {
    EXPECT_NE(::mkdtemp(own_.data()), nullptr);
    fs::permissions(own_, static_cast<fs::perms>(0755));
  }
  ~BwrapTest() override {
    std::error_code ignored;
    fs::remove_all(own_, ignored);
  }

  // `belljar WORDS` with a PATH that begins with the folder of the test's own programs.
  Command command(std::vector<std::string> words, const std::string& path) {
    words.insert(words.begin(), belljar_program());
    return {.argv = std::move(words), .env = {{"PATH", path}}, .cwd = work_.path()};
  }
  Output sealed_with(const std::string& path, const std::string& script, const std::vector<std::string>& options = {}) {
    std::vector<std::string> words{"run", "--mode", "bwrap", "--report", reports_ / "report.json"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", script});
    return run(command(words, path));
  }
  [[nodiscard]] const std::string& own() const { return own_; }
  static std::string real() { return bubblewrap_program(); }
  static std::string path() { return real().substr(0, real().rfind('/')) + ":/usr/bin:/bin"; }
  // A program called bwrap, in the place of the distribution's.
  void write_bwrap(const std::string& script) const {
    write_file(own() + "/bwrap", "#!/bin/sh\n" + script);
    fs::permissions(own() + "/bwrap", static_cast<fs::perms>(0755));
  }
  // Refused, with the command never run, and settled.
  void expect_refusal(const Output& output, const std::string& why) const {
    EXPECT_EQ(output.code, 125);
    EXPECT_EQ(output.out, "");
    EXPECT_THAT(output.err, HasSubstr(why));
    EXPECT_THAT(output.err, HasSubstr("refusing"));
    EXPECT_FALSE(fs::exists(work_ / "ran"));
    EXPECT_THAT(read_text(reports_ / "report.json"), HasSubstr(R"("reason": "failed")"));
  }

  TempDir work_;
  TempDir reports_;
  std::string own_ = "/var/tmp/belljar-bwrap.XXXXXX";
};

TEST_F(BwrapTest, RunsTheCommandByTheBubblewrapInPath) {
  // It notes what it is told, and does it.
  write_bwrap("case $1 in --version) exec " + real() + " --version;; esac\necho \"$@\" >" + own() + "/words\nexec " +
              real() + " \"$@\"\n");
  write_file(own() + "/words", "");
  fs::permissions(own() + "/words", static_cast<fs::perms>(0666));
  const Output output = sealed_with(own() + ":/usr/bin:/bin", "touch ran; exit 3");
  EXPECT_EQ(output.code, 3) << output.err;
  EXPECT_TRUE(fs::exists(work_ / "ran"));
  EXPECT_THAT(read_text(reports_ / "report.json"), HasSubstr(R"("tier": "bwrap")"));
  EXPECT_THAT(read_text(own() + "/words"), HasSubstr("--unshare-net --disable-userns --die-with-parent"));
}

TEST_F(BwrapTest, WithoutBubblewrapIsRefusedWithTheRemedy) {
  for (const char* name : {"sh", "true", "touch"}) fs::create_symlink(std::string("/bin/") + name, own() + "/" + name);
  const Output output = sealed_with(own(), "touch ran");
  expect_refusal(output, "use bubblewrap 'bwrap': there is no bwrap in PATH");
  EXPECT_THAT(output.err, HasSubstr("apt-get install bubblewrap, or use mode = \"jail\""));
}

TEST_F(BwrapTest, AnOldOneIsRefusedByName) {
  write_bwrap("echo bubblewrap 0.7.0\n");
  const Output output = sealed_with(own() + ":/usr/bin", "touch ran");
  expect_refusal(output, "bubblewrap 0.7.0, which cannot forbid namespaces inside; the first that can is 0.8.0");
}

TEST_F(BwrapTest, AHostWhereItMakesNoNamespacesIsRefusedWithWhatItSaid) {
  write_bwrap(
      "[ \"$1\" = --version ] && exec echo bubblewrap 0.8.0\n"
      "echo 'bwrap: No permissions to create new namespace' >&2; exit 1\n");
  const Output output = sealed_with(own() + ":/usr/bin", "touch ran");
  expect_refusal(output, "bwrap: No permissions to create new namespace");
  EXPECT_THAT(output.err, HasSubstr("bwrap-userns-restrict"));
  EXPECT_THAT(output.err, HasSubstr(kWould));
}

TEST_F(BwrapTest, OneThatDoesNothingOfWhatItIsToldIsNotBelieved) {
  // It executes the guest's program without any namespace.
  write_bwrap(
      "[ \"$1\" = --version ] && exec echo bubblewrap 0.13.0\n"
      "echo \"{ \\\"child-pid\\\": $$ }\" >&9\nexec /proc/self/fd/8\n");
  expect_refusal(sealed_with(own() + ":/usr/bin", "touch ran"), "start bubblewrap");
}

// All that belljar and the guest say to each other goes through descriptors that bubblewrap hands on, as its own
// --info-fd and --ro-bind-data do. One that is kept back, by whatever confines bubblewrap, is no launch.
TEST_F(BwrapTest, OneThatHandsNoDescriptorOnIsRefused) {
  for (const char* kept_back : {"3<&-", "4<&-", "8<&-", "3<&- 4<&- 5<&- 6<&- 7<&- 8<&-", "3</dev/null"}) {
    write_bwrap("[ \"$1\" = --version ] && exec " + real() + " --version\nexec " + real() + " \"$@\" " +
                std::string(kept_back) + "\n");
    // Whether it ends before or after its first word, it is named.
    expect_refusal(sealed_with(own() + ":/usr/bin", "touch ran"), " '" + own() + "/bwrap': ");
  }
  write_bwrap("exec " + real() + " \"$@\"\n");
  EXPECT_EQ(sealed_with(own() + ":/usr/bin", "touch ran").code, 0) << "else this test shows nothing";
}

TEST_F(BwrapTest, WhatItCannotHoldIsRefusedBeforeAnythingStarts) {
  struct Combination {
    std::string policy;
    std::string why;
  };
  for (const auto& [policy, why] :
       std::vector<Combination>{{"[isolation]\ntransparent = \"required\"\n", "isolation.transparent 'required'"},
                                {"[isolation]\nnested = true\n", "isolation.nested 'true'"},
                                {"[limits]\nscratch_files = 100\n", "limits 'scratch_files'"}}) {
    write_file(reports_ / "policy.toml", policy);
    const Output output = sealed_with(path(), "touch ran", {"--policy", reports_ / "policy.toml"});
    expect_refusal(output, why);
    EXPECT_THAT(output.err, HasSubstr("use mode = \"jail\""));
  }
  fs::create_symlink("settings", work_ / ".envrc");
  expect_refusal(sealed_with(path(), "touch ran"), "it is a symbolic link, which bubblewrap cannot keep");
  write_file(reports_ / "policy.toml", "[files]\napprove = [\".envrc\"]\n");
  EXPECT_EQ(sealed_with(path(), "true", {"--policy", reports_ / "policy.toml"}).code, 0);
}

TEST_F(BwrapTest, PlanAndProbeTellOfIt) {
  const Output plan = run(command({"plan", "--mode", "bwrap", "--", "true"}, path()));
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("mode        bwrap"));
  const std::string version = run({.argv = {real(), "--version"}}).out;
  EXPECT_THAT(plan.out, HasSubstr("made by " + version.substr(0, version.find('\n')) + " (" + real() + ")"));
  const Output probe = run(command({"probe", "--mode", "bwrap"}, path()));
  EXPECT_EQ(probe.code, 0) << probe.err;
  EXPECT_THAT(probe.out, HasSubstr("ok      namespace-limit"));
  EXPECT_THAT(probe.out, Not(HasSubstr("FAILED")));
  EXPECT_THAT(run(command({"doctor"}, path())).out, HasSubstr(real() + ", version 0."));
}

// CVE-2026-87766: below 0.12.0 a mount point is made through a link out of the new root, where the whole host still is.
TEST_F(BwrapTest, FollowsLinksAsItsVersionSaysAndIsNeverLedToOne) {
  const std::string outside = own() + "/outside";
  fs::create_directory(outside);
  fs::permissions(outside, static_cast<fs::perms>(0777));
  fs::create_symlink("/oldroot" + outside, work_ / "link");
  unsigned minor = 0;
  ASSERT_EQ(std::sscanf(run({.argv = {real(), "--version"}}).out.c_str(), "bubblewrap 0.%u", &minor), 1);
  (void)run({.argv = {real(), "--unshare-user", "--ro-bind", "/", "/", "--bind", work_.path(), work_.path(), "--dir",
                      work_ / "link/made", "true"}});
  EXPECT_EQ(fs::exists(outside + "/made"), minor < 12);
  EXPECT_EQ(run(command({"plan", "--mode", "bwrap", "--", "true"}, path())).out.contains("CVE-2026-87766"), minor < 12);
  fs::remove(outside + "/made");
  fs::create_directory(work_ / "inner");
  fs::create_symlink("/oldroot" + outside, work_ / "inner/.git");
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{},
                                             {"--approve", "inner/.git"},
                                             {"--approve", "inner/.git", "--hide", "./link/made"},
                                             {"--approve", "inner/.git", "--read", "./link/made"},
                                             {"--approve", "inner/.git", "--write", work_ / "link/made"}}) {
    const Output output = sealed_with(path(), "true", options);
    EXPECT_TRUE(output.code == 0 || output.err.contains("refusing")) << output.code << output.err;
    EXPECT_TRUE(fs::is_empty(outside));
  }
  EXPECT_EQ(sealed_with(path(), "true", {"--approve", "inner/.git"}).code, 0) << "else this test shows nothing";
}

TEST_F(BwrapTest, NothingOfItIsLeft) {
  const std::string marker = "8643." + std::to_string(::getpid());
  const Output output = sealed_with(path(), "sleep " + marker + " & exit 4");
  EXPECT_EQ(output.code, 4);
  EXPECT_TRUE(processes_with(marker).empty());
  EXPECT_TRUE(processes_with("--tmpfs " + work_.path()).empty());
}

}  // namespace
}  // namespace belljar::testing
