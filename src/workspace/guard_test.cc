#include "workspace/guard.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "base/io.h"
#include "workspace/quarantine.h"
#include "workspace/quarantine_store.h"

namespace belljar::workspace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

fs::path new_folder(const fs::path& parent) {
  std::string pattern = parent / "belljar-guard-XXXXXX";
  EXPECT_NE(::mkdtemp(pattern.data()), nullptr) << pattern;
  return fs::canonical(pattern);
}

class GuardTest : public ::testing::Test {
 protected:
  GuardTest() : folder_(new_folder(fs::temp_directory_path())) {
    root_ = folder_ / "work";
    fs::create_directories(root_);
    guard_.quarantine = folder_ / "state/quarantine";
    guard_.session = "0123456789abcdef";
  }
  ~GuardTest() override { fs::remove_all(folder_); }

  void file(const std::string& path, const std::string& text = {}) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void folder(const std::string& path) const { fs::create_directories(root_ / path); }
  [[nodiscard]] bool is_there(const std::string& path) const { return fs::exists(fs::symlink_status(root_ / path)); }
  [[nodiscard]] static std::string text_of(const fs::path& path) {
    return base::read_file(path, 4096, false).value_or("unreadable");
  }

  // What is there now is the host's.
  void begin() {
    const base::Fd root(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    FileLook look;
    ASSERT_TRUE(look_at(root.get(), "", look));
    guard_.root = root_;
    guard_.id = look.id;
    auto found = find_protected(root.get(), guard_.approved);
    ASSERT_TRUE(found);
    guard_.known = found->known;
  }
  // Goes by way of the record, as a recovery does.
  Settled end(int scratch = -1) {
    const auto guard = decode_guard(encode(guard_));
    EXPECT_TRUE(guard && *guard == guard_);
    auto settled = settle(*guard, scratch, {});
    EXPECT_TRUE(settled) << settled.error().message();
    return settled.value_or(Settled{});
  }
  // The same in a process that the kernel kills at the first renameat2(2) with `flag`. False when it was not killed.
  bool end_killed_at_rename(unsigned flag) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      std::array filter{
          sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
          sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
          sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 4 * sizeof(uint64_t)),
          sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, flag, 0, 1),
          sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
          sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      };
      const sock_fprog program{filter.size(), filter.data()};
      if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
          ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        ::_exit(2);
      }
      (void)end();
      ::_exit(0);
    }
    int status = 0;
    return ::waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
  }
  // The paths, relative to the work folder, that went to quarantine; each must be where it is said to be.
  std::vector<std::string> quarantined(const Settled& settled) const {
    std::vector<std::string> out;
    for (const Quarantined& one : settled.quarantined()) {
      EXPECT_EQ(one.reason, "");
      EXPECT_TRUE(fs::exists(fs::symlink_status(one.moved_to))) << one.moved_to;
      out.push_back(fs::path(one.path).lexically_relative(root_));
    }
    return out;
  }

  fs::path folder_;
  fs::path root_;
  Guard guard_;
};

TEST_F(GuardTest, LeavesWhatWasThereAndWhatNobodyObeys) {
  folder(".git/hooks");
  file("a/.envrc", "x");
  folder(".claude");
  begin();
  file("a/code.cc", "int main() {}");
  file("node_modules/x/.vscode/settings.json");
  file(".github/workflows/ci.yml");
  const Settled settled = end();
  EXPECT_TRUE(settled.empty());
  EXPECT_FALSE(fs::exists(guard_.quarantine)) << "nothing is made before there is something to put in";
  EXPECT_TRUE(is_there("node_modules/x/.vscode/settings.json"));
}

TEST_F(GuardTest, PutsAwayWhatIsNewAtAnyDepthWhateverItIs) {
  begin();
  file(".git/config", "[core]\nfsmonitor = evil\n");
  file("a/b/.git", "gitdir: /elsewhere\n");
  file("a/b/c/d/.envrc", "evil");
  folder("a/.VSCODE");
  fs::create_symlink("/etc", root_ / ".claude");
  ASSERT_EQ(::mkfifo((root_ / ".mcp.json").c_str(), 0600), 0);
  const Settled settled = end();
  EXPECT_THAT(quarantined(settled),
              UnorderedElementsAre(".git", "a/b/.git", "a/b/c/d/.envrc", "a/.VSCODE", ".claude", ".mcp.json"));
  EXPECT_THAT(settled.unreleased(), IsEmpty());
  for (const char* path : {".git", "a/b/.git", "a/b/c/d/.envrc", "a/.VSCODE", ".claude", ".mcp.json"}) {
    EXPECT_FALSE(is_there(path)) << path;
  }
  EXPECT_TRUE(is_there("a/b/c/d"));
  struct stat info{};
  ASSERT_EQ(::stat((guard_.quarantine + "/" + guard_.session).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
  for (const Quarantined& one : settled.quarantined()) {
    EXPECT_EQ(text_of(one.moved_to + std::string(kOriginSuffix)), one.path);
    EXPECT_THAT(fs::path(one.moved_to).filename().string(), ::testing::MatchesRegex("[0-9]+"));
  }
  EXPECT_TRUE(end().empty()) << "nothing is left for a second time";
}

TEST_F(GuardTest, PutsAwayWhatWasReplaced) {
  file("a/.envrc", "host's");
  folder("b/.git");
  fs::create_symlink("somewhere", root_ / ".gemini");
  begin();
  // A folder above is moved away, with the mount, and made anew.
  fs::rename(root_ / "a", root_ / "moved");
  file("a/.envrc", "evil");
  fs::rename(root_ / "b", root_ / "c");
  fs::create_directory_symlink("c/.git", root_ / "b");
  fs::remove(root_ / ".gemini");
  fs::create_symlink("elsewhere", root_ / ".gemini");
  const Settled settled = end();
  EXPECT_THAT(quarantined(settled), UnorderedElementsAre("a/.envrc", ".gemini"));
  EXPECT_EQ(text_of(root_ / "moved/.envrc"), "host's");
  EXPECT_TRUE(is_there("c/.git"));
  EXPECT_THAT(settled.notes(), SizeIs(2));
}

TEST_F(GuardTest, DoesNotTakeASecondNameForTheHosts) {
  file(".envrc", "host's");
  file("mod/.git", "gitdir: ../x\n");
  begin();
  fs::create_hard_link(root_ / ".envrc", root_ / "again");
  fs::create_directories(root_ / "sub");
  fs::create_hard_link(root_ / ".envrc", root_ / "sub/.envrc");
  // A file that names a repository, from where it leads elsewhere.
  fs::create_directories(root_ / "deep/er");
  fs::rename(root_ / "mod", root_ / "deep/er/mod");
  EXPECT_THAT(quarantined(end()), UnorderedElementsAre("sub/.envrc", "deep/er/mod/.git"));
}

TEST_F(GuardTest, TakesTheHeadFromWhatHasTheShapeOfARepository) {
  folder("host/objects");
  folder("host/refs");
  file("host/HEAD", "ref: refs/heads/main\n");
  begin();
  for (const char* name : {"bare/objects", "bare/refs", "objects", "refs"}) folder(name);
  for (const char* name : {"bare/HEAD", "bare/config", "HEAD", "tree/HEAD", "tree/commondir"}) file(name);
  EXPECT_THAT(quarantined(end()), UnorderedElementsAre("bare/HEAD", "HEAD", "tree/HEAD"));
  EXPECT_TRUE(is_there("host/HEAD"));
  EXPECT_TRUE(is_there("bare/config"));
}

TEST_F(GuardTest, MakesAGitFolderInertInQuarantine) {
  begin();
  file(".git/HEAD", "ref: refs/heads/main\n");
  const Settled settled = end();
  ASSERT_THAT(settled.quarantined(), SizeIs(1));
  const fs::path moved = settled.quarantined().front().moved_to;
  EXPECT_FALSE(fs::exists(moved / "HEAD"));
  EXPECT_TRUE(fs::exists(moved / kInertHead));
}

TEST_F(GuardTest, SaysWhatIsGone) {
  file(".envrc", "host's");
  file("a/.mcp.json", "{}");
  fs::create_hard_link(root_ / ".envrc", root_ / "a/.envrc");
  begin();
  fs::remove(root_ / "a/.mcp.json");
  const Settled settled = end();
  EXPECT_THAT(settled.notes(), ElementsAre("'a/.mcp.json' is gone"));
  EXPECT_THAT(settled.quarantined(), IsEmpty()) << "both names of one file were there before";
}

TEST_F(GuardTest, MakesAGitFolderInertThatHasTheOtherNameTaken) {
  begin();
  file(".git/HEAD", "ref: refs/heads/main\n");
  file(".git/HEAD.quarantined", "decoy");
  for (int i = 0; i < 120; ++i) file(".git/HEAD.quarantined." + std::to_string(i), "decoy");
  file("a/.vscode/.git.quarantined", "decoy");
  file("a/.vscode/.git/HEAD", "ref: refs/heads/main\n");
  file("b/.vscode/.git", "gitdir: /elsewhere\n");
  file("c/.vscode/.hg/hgrc", "[hooks]\n");
  const Settled settled = end();
  ASSERT_THAT(settled.quarantined(), SizeIs(4));
  for (const Quarantined& one : settled.quarantined()) {
    EXPECT_FALSE(fs::exists(fs::symlink_status(fs::path(one.moved_to) / "HEAD"))) << one.path;
    EXPECT_FALSE(fs::exists(fs::symlink_status(fs::path(one.moved_to) / ".git"))) << one.path;
    EXPECT_FALSE(fs::exists(fs::symlink_status(fs::path(one.moved_to) / ".hg"))) << one.path;
  }
}

// What is obeyed there is obeyed by way of the path.
TEST_F(GuardTest, PutsAwayALinkOnTheWayToWhatIsObeyed) {
  file("tools/hooks/pre-commit", "host's");
  begin();
  for (const char* path : {"tools/hooks", "cfg/new/x"}) guard_.watched.emplace_back(path);
  fs::rename(root_ / "tools", root_ / "t2");
  file("evil/hooks/pre-commit", "evil");
  fs::create_symlink("evil", root_ / "tools");
  folder("cfg");
  fs::create_symlink("../evil", root_ / "cfg/new");
  EXPECT_THAT(quarantined(end()), UnorderedElementsAre("tools", "cfg/new"));
  EXPECT_TRUE(is_there("evil/hooks/pre-commit"));
}

TEST_F(GuardTest, PutsAwayLinksToWhatNobodyLooksThrough) {
  fs::create_directories(folder_ / "cache/deep");
  guard_.unswept = {(folder_ / "cache").string()};
  begin();
  fs::create_symlink(folder_ / "cache/deep", root_ / "absolute");
  folder("a");
  fs::create_symlink("../../cache", root_ / "a/relative");
  fs::create_symlink("a/relative/deep", root_ / "behind");
  fs::create_symlink(folder_ / "nothing", root_ / "nowhere");
  fs::create_symlink("../a", root_ / "a/inside");
  fs::create_symlink("/usr", root_ / "elsewhere");
  EXPECT_THAT(quarantined(end()), ::testing::IsSupersetOf({"absolute", "a/relative"}));
  EXPECT_FALSE(fs::exists(root_ / "behind")) << "whichever was looked at first";
  for (const char* name : {"a/inside", "elsewhere", "nowhere"}) EXPECT_TRUE(is_there(name)) << name;
}

// Links that take long to follow are not followed before everything else was looked at.
TEST_F(GuardTest, LinksWithAVeryLongTextArePutAwayUnread) {
  fs::create_directories(folder_ / "cache");
  guard_.unswept = {(folder_ / "cache").string()};
  begin();
  std::string way;
  for (int i = 0; i < 100; ++i) way += "./././";
  fs::create_symlink(way + "nothing", root_ / "long");
  fs::create_symlink(way.substr(0, 300) + "nothing", root_ / "short");
  EXPECT_THAT(quarantined(end()), ElementsAre("long"));
}

TEST_F(GuardTest, LinksAreFoundThatAreTooManyTooDeepOrInShutFolders) {
  fs::create_directories(folder_ / "cache");
  guard_.unswept = {(folder_ / "cache").string()};
  begin();
  folder("shut");
  fs::create_symlink(folder_ / "cache", root_ / "shut/link");
  fs::permissions(root_ / "shut", fs::perms::none);
  const Settled settled = end();
  fs::permissions(root_ / "shut", fs::perms::owner_all);
  EXPECT_THAT(quarantined(settled), ElementsAre("shut/link"));
  folder("many");
  for (int i = 0; i < 20'010; ++i) fs::create_symlink("nothing", root_ / "many" / std::to_string(i));
  folder("zz");
  fs::create_symlink(folder_ / "cache", root_ / "zz/link");
  fs::create_symlink(folder_ / "cache", root_ / "many/link");
  EXPECT_THAT(quarantined(end()), UnorderedElementsAre("zz/link", "many/link"));
}

TEST_F(GuardTest, WhatComesToNoEndSaysSoAndGoesOnLater) {
  begin();
  folder("many");
  for (int i = 0; i < 1000; ++i) file("many/" + std::to_string(i) + "/.envrc");
  const auto cut_off = settle(guard_, -1, base::Deadline::after(std::chrono::seconds(0)));
  ASSERT_TRUE(cut_off);
  EXPECT_TRUE(cut_off->unfinished());
  EXPECT_THAT(cut_off->unreleased(), ElementsAre(HasSubstr("did not come to an end in time")));
  EXPECT_LT(cut_off->quarantined().size(), 1000);
  const Settled rest = end();
  EXPECT_FALSE(rest.unfinished());
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(is_there("many/" + std::to_string(i) + "/.envrc"));
}

TEST_F(GuardTest, LooksIntoShutFoldersAndLeavesThemShut) {
  begin();
  file("a/.envrc", "evil");
  file("a/b/c/.mcp.json", "evil");
  fs::permissions(root_ / "a/b/c", fs::perms::owner_read);
  fs::permissions(root_ / "a/b", fs::perms::none);
  fs::permissions(root_ / "a", fs::perms::owner_exec);
  fs::permissions(root_, fs::perms::owner_exec);
  const Settled settled = end();
  EXPECT_THAT(settled.unreleased(), IsEmpty());
  EXPECT_THAT(settled.quarantined(), SizeIs(2));
  EXPECT_EQ(fs::status(root_).permissions(), fs::perms::owner_exec);
  fs::permissions(root_, fs::perms::owner_all);
  EXPECT_EQ(fs::status(root_ / "a").permissions(), fs::perms::owner_exec);
  fs::permissions(root_ / "a", fs::perms::owner_all);
  EXPECT_EQ(fs::status(root_ / "a/b").permissions(), fs::perms::none);
  fs::permissions(root_ / "a/b", fs::perms::owner_all);
  EXPECT_EQ(fs::status(root_ / "a/b/c").permissions(), fs::perms::owner_read);
  fs::permissions(root_ / "a/b/c", fs::perms::owner_all);
}

TEST_F(GuardTest, LeavesWhatAPersonApproved) {
  guard_.approved = {"build/**", ".vscode", "vendor/*/.git"};
  begin();
  folder("build/_deps/x/.git/modules/.git");
  folder(".vscode/x/.git");
  folder("vendor/a/.git");
  folder("vendor/a/b/.git");
  EXPECT_THAT(quarantined(end()), UnorderedElementsAre(".vscode/x/.git", "vendor/a/b/.git"));
}

TEST_F(GuardTest, PutsAwayWhatAProtectedLinkLeadsTo) {
  folder(".git");
  folder("a");
  guard_.watched = {"shared", "a/b/c", "gone/x"};
  begin();
  folder("shared/pre-commit");
  folder("a/b/c");
  EXPECT_THAT(quarantined(end()), UnorderedElementsAre("shared", "a/b/c"));
}

TEST_F(GuardTest, PutsAwayWhatGitWouldObeyInAFolderThatTheGuestCouldWrite) {
  folder(".git/hooks");
  file(".git/config", "host's");
  begin();
  GitFolder git{.path = root_ / ".git", .id = {}, .known = {}, .config = "host's"};
  FileLook look;
  ASSERT_TRUE(look_at(AT_FDCWD, git.path.c_str(), look));
  git.id = look.id;
  for (const char* name : {"hooks", "config"}) {
    ASSERT_TRUE(look_at(AT_FDCWD, (git.path + "/" + name).c_str(), look));
    git.known.push_back({.path = name, .id = look.id});
  }
  guard_.git_folders = {git};
  EXPECT_TRUE(end().empty());
  folder(".git/objects");
  for (const char* name : {"commondir", "config.worktree", "remotes/origin", "rebase-merge/git-rebase-todo"}) {
    file(std::string(".git/") + name, "evil");
  }
  fs::rename(root_ / ".git/config", root_ / ".git/old");
  file(".git/config", "evil");
  EXPECT_THAT(quarantined(end()), UnorderedElementsAre(".git/commondir", ".git/config.worktree", ".git/remotes",
                                                       ".git/rebase-merge", ".git/config"));
  EXPECT_EQ(text_of(root_ / ".git/config"), "host's");
  EXPECT_TRUE(is_there(".git/objects"));
  EXPECT_TRUE(is_there(".git/hooks"));
}

// What is changed in one look is never half done: whoever is killed between two steps has left all of it findable.
TEST_F(GuardTest, AnEndThatIsKilledAtItsMovesLosesNothing) {
  file(".git/config", "host's");
  begin();
  FileLook look;
  ASSERT_TRUE(look_at(AT_FDCWD, (root_ / ".git").c_str(), look));
  GitFolder git{.path = root_ / ".git", .id = look.id, .known = {}, .config = "host's"};
  ASSERT_TRUE(look_at(AT_FDCWD, (root_ / ".git/config").c_str(), look));
  git.known.push_back({.path = "config", .id = look.id});
  guard_.git_folders = {git};
  fs::rename(root_ / ".git/config", root_ / ".git/old");
  file(".git/config", "evil");
  file("new/.envrc", "evil");
  const fs::path beside = root_ / ".git/.belljar-quarantine-0123456789abcdef-config";

  ASSERT_TRUE(end_killed_at_rename(RENAME_EXCHANGE));
  EXPECT_EQ(text_of(root_ / ".git/config"), "evil");
  EXPECT_EQ(text_of(beside), "host's");
  ASSERT_TRUE(end_killed_at_rename(RENAME_NOREPLACE));
  EXPECT_TRUE(is_there("new/.envrc"));
  const auto store = QuarantineStore::open(guard_.quarantine);
  ASSERT_TRUE(store);
  EXPECT_THAT(store->list().value(), IsEmpty());

  EXPECT_THAT(quarantined(end()), UnorderedElementsAre("new/.envrc", ".git/config", ".git/config"));
  EXPECT_EQ(text_of(root_ / ".git/config"), "host's");
  EXPECT_FALSE(fs::exists(beside));
  std::vector<std::string> origins;
  const auto items = store->list().value();
  for (const QuarantineItem& item : items) origins.push_back(item.origin);
  EXPECT_THAT(origins, UnorderedElementsAre(root_ / "new/.envrc", root_ / ".git/config", root_ / ".git/config"));
  // It has the host's text, so there is nothing to do.
  EXPECT_TRUE(end().empty());
}

TEST_F(GuardTest, IsNotHeldUpByPermissions) {
  begin();
  file("shut/in/.git/config");
  file("kept/.envrc");
  ASSERT_EQ(::chmod((root_ / "shut/in/.git").c_str(), 0500), 0);
  ASSERT_EQ(::chmod((root_ / "shut/in").c_str(), 0), 0);
  ASSERT_EQ(::chmod((root_ / "shut").c_str(), 0), 0);
  ASSERT_EQ(::chmod((root_ / "kept").c_str(), 0555), 0);
  const Settled settled = end();
  EXPECT_THAT(quarantined(settled), UnorderedElementsAre("shut/in/.git", "kept/.envrc"));
  EXPECT_THAT(settled.unreleased(), IsEmpty());
  for (const char* path : {"kept", "shut", "shut/in"}) ASSERT_EQ(::chmod((root_ / path).c_str(), 0755), 0);
}

TEST_F(GuardTest, FollowsNoLinkOutOfTheWorkFolder) {
  fs::create_directories(folder_ / "outside/.git");
  std::ofstream(folder_ / "outside/.envrc") << "mine";
  begin();
  fs::create_directory_symlink(folder_ / "outside", root_ / "out");
  fs::create_directory_symlink("..", root_ / "up");
  fs::create_symlink(folder_ / "outside/.envrc", root_ / ".envrc");
  EXPECT_THAT(quarantined(end()), ElementsAre(".envrc"));
  EXPECT_TRUE(fs::exists(folder_ / "outside/.git"));
  EXPECT_EQ(text_of(folder_ / "outside/.envrc"), "mine");
}

TEST_F(GuardTest, DoesNotTrustAQuarantineThatTheGuestMade) {
  begin();
  folder(".belljar-quarantine-x/.git");
  folder(std::string(kQuarantinePrefix) + guard_.session + "/.git");
  EXPECT_THAT(end().quarantined(), SizeIs(2));
  EXPECT_FALSE(is_there(".belljar-quarantine-x"));
}

TEST_F(GuardTest, CopesWithManyAndWithDeepOnes) {
  begin();
  for (int i = 0; i < 520; ++i) folder("many/" + std::to_string(i) + "/.git");
  base::Fd at(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int level = 0; level < 400; ++level) {
    ASSERT_EQ(::mkdirat(at.get(), "down", 0700), 0);
    at = base::Fd(::openat(at.get(), "down", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ASSERT_EQ(::mkdirat(at.get(), ".git", 0700), 0);
  const Settled settled = end();
  EXPECT_EQ(settled.quarantined().size() + settled.unlisted(), 521U);
  const base::Fd root(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto left = find_protected(root.get(), {});
  ASSERT_TRUE(left);
  EXPECT_TRUE(std::ranges::all_of(left->known, [](const Known& known) { return known.name == NameKind::kQuarantine; }));
}

TEST_F(GuardTest, StaysInTheWorkFolderWhenTheStateIsOnAnotherFileSystem) {
  const fs::path elsewhere = new_folder("/dev/shm");
  struct stat here{};
  struct stat there{};
  ASSERT_EQ(::stat(root_.c_str(), &here), 0);
  ASSERT_EQ(::stat(elsewhere.c_str(), &there), 0);
  ASSERT_NE(here.st_dev, there.st_dev) << "the temporary folder and /dev/shm are one file system here";
  guard_.quarantine = elsewhere / "quarantine";
  begin();
  file("a/.envrc", "evil");
  folder("b/.git");
  const Settled settled = end();
  EXPECT_THAT(quarantined(settled), UnorderedElementsAre("a/.envrc", "b/.git"));
  const fs::path beside = root_ / (std::string(kQuarantinePrefix) + guard_.session);
  EXPECT_EQ(fs::path(settled.quarantined().front().moved_to).parent_path(), beside);
  struct stat info{};
  ASSERT_EQ(::stat(beside.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
  fs::remove_all(elsewhere);
}

TEST_F(GuardTest, RefusesAnotherFolderInThePlaceOfTheWorkFolder) {
  begin();
  fs::rename(root_, folder_ / "was");
  folder(".git");
  const auto settled = settle(guard_, -1, {});
  ASSERT_FALSE(settled);
  EXPECT_THAT(settled.error().message(), HasSubstr("it is another folder than at the launch"));
  EXPECT_TRUE(is_there(".git"));
  fs::remove(root_ / ".git");
  fs::remove(root_);
  fs::create_directory_symlink(folder_ / "was", root_);
  EXPECT_FALSE(settle(guard_, -1, {}));
}

TEST_F(GuardTest, ListsWhatWasWrittenToAPrivateCopy) {
  file(".claude/settings.json", "{}");
  file(".claude/agents/one.md", "x");
  begin();
  const fs::path scratch = folder_ / "scratch";
  fs::create_directories(scratch / "7/upper/agents");
  fs::create_directories(scratch / "7/upper/skills/new");
  for (const char* name : {"settings.json", "agents/two.md", "skills/new/SKILL.md"}) {
    std::ofstream(scratch / "7/upper" / name) << "y";
  }
  fs::create_symlink("/etc/shadow", scratch / "7/upper/link");
  guard_.copies = {{root_ / ".claude", "7/upper"}, {root_ / ".vscode", "8/upper"}};
  const base::Fd fd(::open(scratch.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::vector<std::string> said;
  const Settled settled = end(fd.get());
  for (const Change& change : settled.changes()) {
    said.push_back(std::string(to_text(change.kind)) + " " + fs::path(change.path).lexically_relative(root_).string());
  }
  EXPECT_THAT(said, UnorderedElementsAre("changed .claude/settings.json", "added .claude/agents/two.md",
                                         "added .claude/skills/", "added .claude/skills/new/",
                                         "added .claude/skills/new/SKILL.md", "added .claude/link"));
  EXPECT_EQ(text_of(root_ / ".claude/settings.json"), "{}");
  EXPECT_THAT(end().notes(), SizeIs(2)) << "without the scratch nothing is known of the copies";
}

TEST(GuardRecordTest, IsReadBackOnlyWhole) {
  Guard guard;
  guard.root = "/a";
  guard.known = {{.path = "x\n/.git", .name = NameKind::kGit, .kind = EntryKind::kLink, .id = {1, 2, 3}}};
  guard.approved = {"**"};
  guard.watched = {"shared"};
  guard.git_folders = {{true, true, "/a/.git", {4, 5, 6}, guard.known, "[core]\n"},
                       {false, false, "/a/refs", {7, 8, 9}, {}, ""}};
  guard.unswept = {"/cache"};
  guard.copies = {{"/a/.claude", "3/upper"}};
  const std::string bytes = encode(guard);
  const auto back = decode_guard(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, guard);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_guard(bytes.substr(0, size))) << size;
  EXPECT_FALSE(decode_guard(bytes + "x"));
}

}  // namespace
}  // namespace belljar::workspace
