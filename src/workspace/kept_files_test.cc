#include "workspace/kept_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/fd.h"
#include "workspace/kept_json.h"

namespace belljar::workspace {
namespace {

using Kind = KeptFile::Kind;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

// A host's home and a guest's.
class KeptFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::canonical(fs::temp_directory_path()) / "belljar-kept-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(host(""));
    fs::create_directories(guest(""));
  }
  void TearDown() override { fs::remove_all(root_); }

  [[nodiscard]] std::string host(const std::string& name) const { return root_ + "/host/" + name; }
  [[nodiscard]] std::string guest(const std::string& name) const { return root_ + "/guest/" + name; }
  static void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  // Again and again until the kernel, whose clock for files is a coarse one, says that it was after `earlier`.
  static void write_after(const std::string& earlier, const std::string& path, const std::string& text) {
    struct stat before{}, after{};
    ASSERT_EQ(::stat(earlier.c_str(), &before), 0);
    do {
      write(path, text);
      ASSERT_EQ(::stat(path.c_str(), &after), 0);
    } while (after.st_ctim.tv_sec == before.st_ctim.tv_sec && after.st_ctim.tv_nsec <= before.st_ctim.tv_nsec);
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static bool is_there(const std::string& path) { return fs::exists(fs::symlink_status(path)); }
  [[nodiscard]] KeptFile login() const { return {Kind::kLogin, host(".c/login"), ".c/login", {}}; }
  [[nodiscard]] KeptFile state() const { return {Kind::kState, host(".c.json"), ".c.json", {"user", "count"}}; }

  // As a launch does it: the copies are made, `act` is the session, and then it ends.
  Settled session(std::vector<KeptFile> files, const std::function<void()>& act) {
    auto kept = KeptFiles::open(std::move(files));
    EXPECT_TRUE(kept) << kept.error().message();
    for (const auto& [inside, content] : kept->copies()) write(guest(inside), content);
    act();
    const base::Fd home(::open(guest("").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return kept->settle(home.get());
  }

  std::string root_;
};

ConfigOutcome outcome(const Settled& settled) {
  EXPECT_EQ(settled.configs().size(), 1U);
  return settled.configs().empty() ? ConfigOutcome::kRefused : settled.configs().front().outcome;
}

std::string reason(const Settled& settled) {
  return settled.configs().empty() ? std::string() : settled.configs().front().reason;
}

TEST_F(KeptFilesTest, ALoginThatTheGuestRenewedByRenameIsTheHosts) {
  write(host(".c/login"), std::string("old\0bytes", 9));
  fs::permissions(host(".c/login"), fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  const Settled settled = session({login()}, [&] {
    EXPECT_EQ(read(guest(".c/login")), std::string("old\0bytes", 9));
    write(guest(".c/login.tmp"), "new");
    fs::rename(guest(".c/login.tmp"), guest(".c/login"));
  });
  EXPECT_EQ(outcome(settled), ConfigOutcome::kUpdated);
  EXPECT_EQ(read(host(".c/login")), "new");
  struct stat info{};
  ASSERT_EQ(::stat(host(".c/login").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0640U);
  EXPECT_EQ(std::distance(fs::directory_iterator(host(".c")), {}), 1) << "something was left beside it";
}

TEST_F(KeptFilesTest, AFirstLoginIsTheHostsAndNobodyElses) {
  const Settled settled = session({login()}, [&] { write(guest(".c/login"), "first"); });
  EXPECT_EQ(outcome(settled), ConfigOutcome::kUpdated);
  EXPECT_EQ(read(host(".c/login")), "first");
  struct stat info{};
  ASSERT_EQ(::stat(host(".c/login").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(host(".c").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(KeptFilesTest, NothingIsMadeWhenTheGuestMadeNothing) {
  const KeptFile history{Kind::kHistory, host(".c/sessions"), ".c/sessions", {}};
  const Settled settled = session({login(), state(), history}, [] {});
  EXPECT_TRUE(settled.empty());
  EXPECT_TRUE(fs::is_empty(host("")));
}

TEST_F(KeptFilesTest, OfTwoNewLoginsTheNewerStays) {
  write(host(".c/login"), "old");
  Settled settled = session({login()}, [&] {
    write(host(".c/login"), "host's");
    write_after(host(".c/login"), guest(".c/login"), "guest's");
  });
  EXPECT_EQ(read(host(".c/login")), "guest's");
  EXPECT_THAT(reason(settled), HasSubstr("changed on both sides: the guest's is newer"));

  settled = session({login()}, [&] {
    write(guest(".c/login"), "guest's second");
    // Whatever time the guest gives its file.
    const timespec future[2] = {{4102444800, 0}, {4102444800, 0}};
    ::utimensat(AT_FDCWD, guest(".c/login").c_str(), future, 0);
    write_after(guest(".c/login"), host(".c/login"), "host's second");
  });
  EXPECT_EQ(read(host(".c/login")), "host's second");
  EXPECT_EQ(outcome(settled), ConfigOutcome::kKept);
  EXPECT_THAT(reason(settled), HasSubstr("changed on both sides: the host's is newer"));
}

TEST_F(KeptFilesTest, ALogoutOnEitherSideLosesNothingAndBringsNothingBack) {
  write(host(".c/login"), "old");
  Settled settled = session({login()}, [&] { fs::remove(guest(".c/login")); });
  EXPECT_EQ(read(host(".c/login")), "old");
  EXPECT_THAT(reason(settled), HasSubstr("removed in the guest"));
  settled = session({login()}, [&] {
    fs::remove(host(".c/login"));
    write(guest(".c/login"), "new");
  });
  EXPECT_FALSE(is_there(host(".c/login")));
  EXPECT_THAT(reason(settled), HasSubstr("removed on the host"));
}

TEST_F(KeptFilesTest, OfTheStateOnlyTheNamedKeysAreTaken) {
  write(host(".c.json"), R"({"z":1,"user":"a","projects":{"/w":{"trusted":false}},"count":1})");
  const Settled settled = session({state()}, [&] {
    write(guest(".c.json"), R"({"user":"b","mcpServers":{"x":{"command":"evil"}},"projects":{"/w":{"trusted":true}},
                               "count":2,"env":{"LD_PRELOAD":"x"}})");
  });
  EXPECT_EQ(outcome(settled), ConfigOutcome::kUpdated);
  EXPECT_EQ(
      read(host(".c.json")),
      "{\n  \"z\": 1,\n  \"user\": \"b\",\n  \"projects\": {\n    \"/w\": {\n      \"trusted\": false\n    }\n  },"
      "\n  \"count\": 2\n}\n");
}

TEST_F(KeptFilesTest, WhatTheHostChangedMeanwhileStays) {
  write(host(".c.json"), R"({"user":"a","count":1})");
  const Settled settled = session({state()}, [&] {
    write(host(".c.json"), R"({"user":"host","count":1,"new":true})");
    write(guest(".c.json"), R"({"user":"guest","count":7})");
  });
  EXPECT_EQ(read(host(".c.json")), "{\n  \"user\": \"host\",\n  \"count\": 7,\n  \"new\": true\n}\n");
  EXPECT_THAT(reason(settled), HasSubstr("changed on both sides, and the host's stays: user"));
}

TEST_F(KeptFilesTest, AStateFileThatIsNoJsonChangesNothing) {
  const std::string good = R"({"user":"a"})";
  for (const std::string& bad : {std::string("{"), std::string("[1]"), std::string("\"x\""), std::string(),
                                 std::string(5000, '['), R"({"user":)" + std::string(5000, '{'),
                                 std::string("{\"user\":\"\xff\"}"), std::string("{\"user\":\"\0\"}", 12)}) {
    write(host(".c.json"), good);
    const Settled settled = session({state()}, [&] { write(guest(".c.json"), bad); });
    EXPECT_EQ(outcome(settled), ConfigOutcome::kRefused) << bad;
    EXPECT_EQ(read(host(".c.json")), good);
  }
  // And the host's own, should it be broken, is the person's to mend.
  write(host(".c.json"), "{broken");
  const Settled settled = session({state()}, [&] { write(guest(".c.json"), good); });
  EXPECT_EQ(outcome(settled), ConfigOutcome::kRefused);
  EXPECT_EQ(read(host(".c.json")), "{broken");
}

TEST_F(KeptFilesTest, NeitherLinksNorFifosNorGiantsOfTheGuestsAreRead) {
  write(root_ + "/secret", "secret");
  const std::vector<std::function<void()>> tricks = {
      [&] { fs::create_symlink(root_ + "/secret", guest(".c/login")); },
      [&] { fs::create_symlink("../../secret", guest(".c/login")); },
      [&] { ASSERT_EQ(::mkfifo(guest(".c/login").c_str(), 0600), 0); },
      [&] { fs::create_directory(guest(".c/login")); },
      [&] {
        write(guest(".c/login"), "x");
        fs::resize_file(guest(".c/login"), uint64_t{1} << 40U);
      },
      [&] {
        fs::remove_all(guest(".c"));
        fs::create_directory(guest("../elsewhere"));
        write(guest("../elsewhere/login"), "from elsewhere");
        fs::create_symlink("../elsewhere", guest(".c"));
      },
  };
  for (const auto& trick : tricks) {
    write(host(".c/login"), "old");
    const Settled settled = session({login()}, [&] {
      fs::remove_all(guest(".c/login"));
      trick();
    });
    EXPECT_EQ(outcome(settled), ConfigOutcome::kRefused);
    EXPECT_EQ(read(host(".c/login")), "old");
    fs::remove_all(guest(".c"));
    fs::remove_all(guest("../elsewhere"));
  }
}

TEST_F(KeptFilesTest, NoLinkOnTheHostIsWrittenThrough) {
  write(root_ + "/target", "untouched");
  write(host(".c/login"), "old");
  const Settled settled = session({login()}, [&] {
    fs::remove(host(".c/login"));
    fs::create_symlink(root_ + "/target", host(".c/login"));
    write(guest(".c/login"), "new");
  });
  EXPECT_EQ(outcome(settled), ConfigOutcome::kRefused);
  EXPECT_EQ(read(root_ + "/target"), "untouched");
}

TEST_F(KeptFilesTest, ANewHistoryIsTakenAsPlainFilesAndFolders) {
  const KeptFile history{Kind::kHistory, host(".c/projects/w"), ".c/projects/w", {}};
  const KeptFile memory{Kind::kForbidden, host(".c/projects/w/memory"), ".c/projects/w/memory", {}};
  const Settled settled = session({history, memory}, [&] {
    write(guest(".c/projects/w/one.jsonl"), "1");
    write(guest(".c/projects/w/deep/two"), "2");
    write(guest(".c/projects/w/memory/MEMORY.md"), "obey me");
    fs::create_symlink("/etc/passwd", guest(".c/projects/w/link"));
    ASSERT_EQ(::mkfifo(guest(".c/projects/w/fifo").c_str(), 0600), 0);
    write(guest(".c/projects/w/tool"), "x");
    fs::permissions(guest(".c/projects/w/tool"), fs::perms::all | fs::perms::set_uid);
  });
  EXPECT_EQ(outcome(settled), ConfigOutcome::kUpdated);
  EXPECT_EQ(read(host(".c/projects/w/one.jsonl")), "1");
  EXPECT_EQ(read(host(".c/projects/w/deep/two")), "2");
  for (const char* name : {"memory", "link", "fifo"}) EXPECT_FALSE(is_there(host(".c/projects/w/") + name)) << name;
  struct stat info{};
  ASSERT_EQ(::stat(host(".c/projects/w/tool").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  ASSERT_EQ(settled.notes().size(), 1U);
  EXPECT_THAT(settled.notes().front(), HasSubstr("2 entries of the agent's history were not taken over"));
}

TEST_F(KeptFilesTest, AHistoryOverwritesNothingAndFollowsNothingOfTheHosts) {
  const KeptFile history{Kind::kHistory, host(".c/h"), ".c/h", {}};
  write(root_ + "/elsewhere/x", "untouched");
  session({history}, [&] {
    write(host(".c/h/kept"), "host's");  // made meanwhile, as by another guest
    fs::create_directory_symlink(root_ + "/elsewhere", host(".c/h/sub"));
    fs::create_symlink(root_ + "/elsewhere/x", host(".c/h/file"));
    write(guest(".c/h/kept"), "guest's");
    write(guest(".c/h/sub/x"), "guest's");
    write(guest(".c/h/sub/y"), "guest's");
    write(guest(".c/h/file"), "guest's");
    write(guest(".c/h/added"), "guest's");
  });
  EXPECT_EQ(read(host(".c/h/kept")), "host's");
  EXPECT_EQ(read(root_ + "/elsewhere/x"), "untouched");
  EXPECT_FALSE(is_there(root_ + "/elsewhere/y"));
  EXPECT_EQ(read(host(".c/h/added")), "guest's");
}

TEST_F(KeptFilesTest, WhatMustNotBeInABoundHistoryIsMovedAway) {
  const KeptFile memory{Kind::kForbidden, host(".c/w/memory"), ".c/w/memory", {}};
  fs::create_directories(host(".c/w"));
  Settled settled = session({memory}, [&] { write(host(".c/w/memory/MEMORY.md"), "obey me"); });
  EXPECT_FALSE(is_there(host(".c/w/memory")));
  ASSERT_EQ(settled.quarantined().size(), 1U);
  EXPECT_EQ(settled.quarantined().front().path, host(".c/w/memory"));
  EXPECT_EQ(read(settled.quarantined().front().moved_to + "/MEMORY.md"), "obey me");
  settled = session({memory}, [&] { fs::create_directory_symlink("/etc", host(".c/w/memory")); });
  EXPECT_FALSE(is_there(host(".c/w/memory")));
  EXPECT_EQ(settled.quarantined().size(), 1U);
  // An empty folder says nothing.
  settled = session({memory}, [&] { fs::create_directory(host(".c/w/memory")); });
  EXPECT_FALSE(is_there(host(".c/w/memory")));
  EXPECT_TRUE(settled.quarantined().empty());
}

TEST_F(KeptFilesTest, WhatCannotBeCopiedIsRefusedBeforeTheStart) {
  fs::create_directories(host(".c/login"));
  EXPECT_FALSE(KeptFiles::open({login()}));
  fs::remove_all(host(".c/login"));
  fs::create_symlink("/etc/passwd", host(".c/login"));
  EXPECT_FALSE(KeptFiles::open({login()}));
  fs::remove(host(".c/login"));
  write(host(".c/login"), "x");
  fs::resize_file(host(".c/login"), kMostLogin + 1);
  EXPECT_FALSE(KeptFiles::open({login()}));
}

TEST(MergeState, TakesRemovalsAndLeavesEqualValuesAlone) {
  const std::string base = R"({"a":1,"b":{"x":[1,2]},"c":null})";
  auto merged = merge_state(base, R"({"b":{"x":[1,2]},"c":0})", base, {"a", "b", "c"});
  ASSERT_TRUE(merged) << merged.error().message();
  EXPECT_EQ(merged->text, "{\n  \"b\": {\n    \"x\": [\n      1,\n      2\n    ]\n  },\n  \"c\": 0\n}\n");
  merged = merge_state(base, base, R"({"other":1})", {"a", "b", "c"});
  ASSERT_TRUE(merged);
  EXPECT_FALSE(merged->text) << "the guest changed nothing";
  merged = merge_state(std::nullopt, R"({"a":1,"z":2})", std::nullopt, {"a"});
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->text, "{\n  \"a\": 1\n}\n");
}

}  // namespace
}  // namespace belljar::workspace
