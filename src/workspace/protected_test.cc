#include "workspace/protected.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/fd.h"

namespace belljar::workspace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ProtectedTest : public ::testing::Test {
 protected:
  ProtectedTest() {
    std::string pattern = fs::temp_directory_path() / "belljar-protected-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~ProtectedTest() override { fs::remove_all(folder_); }

  void file(const std::string& path, const std::string& text = {}) {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
  }
  void folder(const std::string& path) { fs::create_directories(folder_ / path); }

  [[nodiscard]] Protected find(const std::vector<std::string>& approved = {}) const {
    const base::Fd root(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto found = find_protected(root.get(), approved);
    EXPECT_TRUE(found) << found.error().message();
    return found.value_or(Protected{});
  }
  [[nodiscard]] std::vector<std::string> paths(const std::vector<std::string>& approved = {}) const {
    std::vector<std::string> out;
    for (const Known& known : find(approved).known) out.push_back(known.path);
    return out;
  }

  fs::path folder_;
};

TEST(ProtectedNameTest, IsKnownHoweverAFileSystemMayCompareIt) {
  for (const char* name : {".git", ".GIT", ".Git", ".g\u200cit", "\u200d.git", ".gi\ufefft", ".git.", ".git "}) {
    EXPECT_EQ(protected_name(name), NameKind::kGit) << name;
  }
  for (const char* name : {".hg", ".HG", ".h\u200cg", ".jj", ".sl", "_darcs", "_DARCS"}) {
    EXPECT_EQ(protected_name(name), NameKind::kRepository) << name;
  }
  for (const char* name : {".claude", ".vscode", ".helix", ".v\u017fcode", ".hu\u017f\u212aY", ".agents"}) {
    EXPECT_EQ(protected_name(name), NameKind::kFolder) << name;
  }
  for (const char* name : {".envrc", ".MCP.json", ".bashrc", ".gitmodules", ".Rprofile", ".iex.exs"}) {
    EXPECT_EQ(protected_name(name), NameKind::kFile) << name;
  }
  for (const char* name : {"", ".", "git", "_", "_darc", "hg", ".hgignore", ".hgtags", ".gitignore", ".github", ".gitx",
                           "x.git", ".env", ".g\u00eft", "\xff.git"}) {
    EXPECT_EQ(protected_name(name), NameKind::kNone) << name;
  }
  EXPECT_EQ(protected_name(".belljar-quarantine-12"), NameKind::kQuarantine);
}

TEST(ProtectedNameTest, OfWhatGitObeysInItsOwnFolder) {
  for (const char* name : {"hooks", "config", "CONFIG", "config.worktree", "commondir", "modules", "rebase-merge",
                           "rebase-apply", "sequencer", "BISECT_NAMES"}) {
    EXPECT_TRUE(obeyed_by_git(name)) << name;
  }
  for (const char* name : {"objects", "refs", "HEAD", "index", "logs", "COMMIT_EDITMSG"}) {
    EXPECT_FALSE(obeyed_by_git(name)) << name;
  }
}

TEST(ApprovalTest, NamesExactlyWhatItSays) {
  EXPECT_TRUE(matches("vendor/*/.git", "vendor/lib/.git"));
  EXPECT_FALSE(matches("vendor/*/.git", "vendor/a/b/.git"));
  EXPECT_FALSE(matches("vendor/*/.git", "x/vendor/lib/.git"));
  EXPECT_TRUE(matches("**/.vscode", ".vscode"));
  EXPECT_TRUE(matches("**/.vscode", "a/b/.vscode"));
  EXPECT_FALSE(matches("**/.vscode", "a/.vscode/b"));
  EXPECT_TRUE(matches("build/**", "build/_deps/x/.git"));
  EXPECT_FALSE(matches("build/**", "builder/.git"));
  EXPECT_FALSE(matches(".git", "a/.git"));
  EXPECT_TRUE(matches("*-src/.git", "fmt-src/.git"));
  EXPECT_FALSE(matches("*-src/.git", "fmt-sr/.git"));
  EXPECT_FALSE(matches("", ".git"));
}

TEST_F(ProtectedTest, AreFoundAtAnyDepthAndNotLookedInto) {
  folder(".git/modules/x/.git");
  folder("a/b/c/.git");
  file("sub/.git", "gitdir: ../.git/modules/sub\n");
  file("a/.envrc");
  folder("a/.vscode/x/.git");
  file("node_modules/x/.bashrc");
  folder("node_modules/x/.vscode/y/.git");
  folder("plain/objects");
  EXPECT_THAT(paths(),
              ElementsAre(".git", "a/.envrc", "a/.vscode", "a/b/c/.git", "node_modules/x/.vscode/y/.git", "sub/.git"));
}

TEST_F(ProtectedTest, SocketsAndFifosAreFoundInsideOfThemToo) {
  for (const char* path : {"s", ".vscode/deep/s", ".git/modules/sub/s", "a/.git/s", "bare/hooks/s", "bare/refs/x"}) {
    folder(fs::path(path).parent_path());
    ASSERT_EQ(::mkfifo((folder_ / path).c_str(), 0600), 0);
  }
  folder("bare/objects");
  file("bare/HEAD");
  folder(".git/objects/00");
  ASSERT_EQ(::mkfifo((folder_ / ".git/objects/00/s").c_str(), 0600), 0);  // looked into by nobody, for its size
  std::vector<std::string> found;
  for (const Special& special : find().special) found.push_back(special.path);
  EXPECT_THAT(found,
              ElementsAre(".git/modules/sub/s", ".vscode/deep/s", "a/.git/s", "bare/hooks/s", "bare/refs/x", "s"));
}

TEST_F(ProtectedTest, WhatSettingsKeepElsewhereIsTold) {
  for (const char* path : {"a/b", "worktrees/x", "a/worktrees", "node_modules/.bin"}) folder(path);
  for (const char* path : {"a/b/in", "out", "worktrees/x/no", "a/worktrees/yes", "node_modules/.bin/no"}) {
    fs::create_symlink("../x", folder_ / path);
  }
  for (const char* path : {"one", "a/two", "worktrees/three"}) file(path);
  fs::create_hard_link(folder_ / "a/two", folder_ / "a/again");
  fs::create_hard_link(folder_ / "worktrees/three", folder_ / "worktrees/again");
  const base::Fd root(::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto found = find_elsewhere(root.get(), {.settings = true});
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->complete);
  EXPECT_THAT(found->links, ElementsAre("a/b/in", "a/worktrees/yes", "out"));
  EXPECT_THAT(found->names, ElementsAre("a/again", "a/two"));
  const auto all = find_elsewhere(root.get(), {});
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->links.size(), 5U);
  EXPECT_EQ(all->names.size(), 4U);
  const auto some = find_elsewhere(root.get(), {.most = 2});
  ASSERT_TRUE(some.has_value());
  EXPECT_FALSE(some->complete);

  FileLook two;
  ASSERT_TRUE(look_at(AT_FDCWD, (folder_ / "a/two").c_str(), two));
  auto names = find_names(root.get(), {two.id});
  ASSERT_TRUE(names.has_value());
  std::ranges::sort(*names);
  EXPECT_THAT(*names, ElementsAre(std::pair("a/again", two.id), std::pair("a/two", two.id)));
}

TEST_F(ProtectedTest, AreToldApart) {
  folder(".git");
  file(".envrc");
  fs::create_symlink("nowhere", folder_ / ".claude");
  ASSERT_EQ(::mkfifo((folder_ / ".mcp.json").c_str(), 0600), 0);
  const Protected found = find();
  ASSERT_EQ(found.known.size(), 4U);
  EXPECT_EQ(found.known[0].kind, EntryKind::kLink);
  EXPECT_EQ(found.known[1].kind, EntryKind::kFile);
  EXPECT_EQ(found.known[2].kind, EntryKind::kFolder);
  EXPECT_EQ(found.known[2].name, NameKind::kGit);
  EXPECT_EQ(found.known[3].kind, EntryKind::kOther);
  struct stat info{};
  ASSERT_EQ(::stat((folder_ / ".git").c_str(), &info), 0);
  EXPECT_EQ(found.known[2].id.inode, info.st_ino);
  EXPECT_EQ(found.entries, 4U);
}

TEST_F(ProtectedTest, AreRepositoriesByTheirShape) {
  for (const char* name : {"bare/HEAD", "tree/HEAD", "tree/commondir", "near/HEAD"}) file(name);
  for (const char* name : {"bare/objects", "bare/refs", "near/objects"}) folder(name);
  const Protected found = find();
  ASSERT_EQ(found.known.size(), 2U);
  EXPECT_EQ(found.known[0].path, "bare");
  EXPECT_TRUE(found.known[0].repository);
  EXPECT_EQ(found.known[1].path, "tree");
}

TEST_F(ProtectedTest, MayBeTheWorkFolderItself) {
  file("HEAD");
  folder("objects");
  folder("refs/.git");
  EXPECT_THAT(paths(), ElementsAre("", "refs/.git"));
}

TEST_F(ProtectedTest, AreNotThoseAPersonApproved) {
  folder("build/_deps/a/.git");
  folder("build/_deps/a/sub/.git");
  folder(".vscode");
  EXPECT_THAT(paths({"build/**", ".vscode"}), IsEmpty());
  EXPECT_THAT(paths({"build/_deps/*/.git"}), ElementsAre(".vscode", "build/_deps/a/sub/.git"));
}

TEST_F(ProtectedTest, LieBehindNoLink) {
  folder("real/.git");
  fs::create_directory_symlink(folder_ / "real", folder_ / "link");
  fs::create_directory_symlink("/", folder_ / "root");
  fs::create_directory_symlink(".", folder_ / "loop");
  EXPECT_THAT(paths(), ElementsAre("real/.git"));
}

// Deeper than folders are held open, with something to find on the way down, on the way up, and at the end.
TEST_F(ProtectedTest, AreFoundInATreeThatIsDeepAndWide) {
  base::Fd at(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  constexpr int kLevels = 600;
  for (int level = 0; level < kLevels; ++level) {
    ASSERT_EQ(::mkdirat(at.get(), "down", 0700), 0);
    if (level % 200 == 199) {
      // Many entries before and after the way down.
      for (int i = 0; i < 1100; ++i) {
        const std::string name = "a-file-" + std::to_string(i);
        const base::Fd made(::openat(at.get(), name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        ASSERT_TRUE(made);
      }
      ASSERT_EQ(::mkdirat(at.get(), ".git", 0700), 0);
    }
    at = base::Fd(::openat(at.get(), "down", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at);
  }
  ASSERT_EQ(::mkdirat(at.get(), ".claude", 0700), 0);
  const Protected found = find();
  EXPECT_EQ(found.known.size(), 4U);
  EXPECT_THAT(found.unseen, IsEmpty());
  EXPECT_EQ(found.entries, static_cast<uint64_t>(kLevels + 3 * 1101 + 1));
}

// By reading and by search permission; to root none is shut.
TEST_F(ProtectedTest, TellsOfFoldersThatAreShut) {
  for (const char* name : {"none", "search", "read", "open"}) folder(std::string(name) + "/.git");
  ASSERT_EQ(::chmod((folder_ / "none").c_str(), 0), 0);
  ASSERT_EQ(::chmod((folder_ / "search").c_str(), 0100), 0);
  ASSERT_EQ(::chmod((folder_ / "read").c_str(), 0400), 0);
  const Protected found = find();
  std::vector<std::string> shut;
  for (const Known& known : found.shut) shut.push_back(known.path);
  const bool root = ::geteuid() == 0;
  EXPECT_THAT(shut, ::testing::UnorderedElementsAreArray(root ? std::vector<std::string>{}
                                                              : std::vector<std::string>{"none", "search", "read"}));
  EXPECT_THAT(found.known, ::testing::SizeIs(root ? 4 : 1));
  EXPECT_THAT(found.unseen, ::testing::IsEmpty());
  for (const char* name : {"none", "search", "read"}) ASSERT_EQ(::chmod((folder_ / name).c_str(), 0700), 0);
}

}  // namespace
}  // namespace belljar::workspace
