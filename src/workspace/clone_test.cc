#include "workspace/clone.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

#include "base/tar.h"
#include "base/temp_tree.h"
#include "linux/landlock_domain.h"
#include "workspace/private_git.h"

namespace belljar::workspace {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

base::Deadline soon() {
  return base::Deadline::after(std::chrono::seconds(60));
}

// What only Belljar makes, nobody else can.
static_assert(!std::is_default_constructible_v<Clone> && !std::is_copy_constructible_v<Clone> &&
              !std::is_copy_assignable_v<Clone> && !std::is_constructible_v<Clone, CloneRecord, base::Fd, base::Fd>);

class Gathered : public TreeSink, public base::TarReader::Sink {
 public:
  base::Status write(std::string_view bytes) override { return reader_.take(bytes); }
  base::Status send(int file, uint64_t size) override {
    std::string bytes(size, '\0');
    EXPECT_EQ(::read(file, bytes.data(), size), static_cast<ssize_t>(size));
    return reader_.take(bytes);
  }
  base::Status on_entry(const base::TarEntry& entry) override {
    paths.push_back(entry.path);
    content_of_ = entry.path;
    return {};
  }
  base::Status on_bytes(std::string_view bytes) override {
    contents[content_of_] += bytes;
    return {};
  }
  base::Status on_end() override { return {}; }
  [[nodiscard]] bool finished() const { return reader_.finished(); }
  std::vector<std::string> paths;
  std::map<std::string, std::string> contents;

 private:
  std::string content_of_;
  base::TarReader reader_{*this};
};

class CloneTest : public ::testing::Test {
 protected:
  CloneTest() {
    ::mkdir((root_ + "/private").c_str(), 0700);
    fs::create_directory(project_);
    git({"init", "--quiet", "--initial-branch=trunk", "."});
    write("code.cc", "int main() {}\n");
    write("sub/large", std::string(200'000, 'x'));
    fs::create_symlink("sub/large", project_ + "/link");
    commit();
  }

  void git(std::vector<std::string> words) const {
    const auto said = run_git({.folder = project_,
                               .arguments = std::move(words),
                               .environment = {"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A",
                                               "GIT_COMMITTER_EMAIL=a@b"}},
                              soon());
    ASSERT_TRUE(said.has_value()) << said.error().message();
  }
  void write(const std::string& name, std::string_view text) const {
    fs::create_directories(fs::path(project_ + "/" + name).parent_path());
    std::ofstream(project_ + "/" + name) << text;
  }
  void commit() const {
    git({"add", "--all"});
    git({"commit", "--quiet", "--message=more"});
  }
  [[nodiscard]] base::Result<Clone> make() const { return Clone::make(project_, place(), soon()); }
  [[nodiscard]] std::string place() const { return root_ + "/private/clone"; }
  // The refusal of the clone itself or of its archive.
  [[nodiscard]] std::string refusal(TreeKind kind) const {
    const auto clone = make();
    if (!clone) return clone.error().message();
    return refusal(*clone, kind);
  }
  static std::string refusal(const Clone& clone, TreeKind kind) {
    const auto measured = clone.measure(kind, soon());
    Gathered sink;
    const auto written = clone.write(kind, sink, soon());
    EXPECT_EQ(measured.has_value(), written.has_value());
    return written ? "" : written.error().message();
  }

  const base::TempTree tree_;
  const std::string root_ = tree_.path();
  const std::string project_ = root_ + "/project";
};

TEST_F(CloneTest, HoldsTheLastCommitAndNothingElse) {
  write("not-committed", "x");
  const auto clone = make();
  ASSERT_TRUE(clone.has_value()) << clone.error().message();
  EXPECT_EQ(clone->record().branch, "trunk");
  Gathered work;
  ASSERT_TRUE(clone->write(TreeKind::kWork, work, soon()).has_value());
  EXPECT_TRUE(work.finished());
  EXPECT_THAT(work.paths, ::testing::UnorderedElementsAre(".git", "code.cc", "link", "sub", "sub/large"));
  EXPECT_EQ(work.contents["sub/large"], std::string(200'000, 'x'));
  Gathered metadata;
  ASSERT_TRUE(clone->write(TreeKind::kMetadata, metadata, soon()).has_value());
  EXPECT_THAT(metadata.paths, Contains("HEAD"));
  for (const std::string& path : metadata.paths) EXPECT_THAT(path, Not(HasSubstr("hooks")));
  EXPECT_THAT(metadata.contents["config"], Not(HasSubstr(project_)));
  const auto tree = clone->tree(soon());
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->at("link").mode, 0120000U);
  EXPECT_EQ(tree->at("sub/large").size, 200'000U);
}

TEST_F(CloneTest, RunsNoFilterAndObeysNoAttribute) {
  write(".gitattributes", "* text eol=crlf filter=evil ident\n");
  write("plain", "$Id$\n");
  commit();
  git({"config", "filter.evil.smudge", "touch " + root_ + "/ran"});
  git({"config", "uploadpack.packObjectsHook", "touch " + root_ + "/ran;"});
  std::ofstream(project_ + "/.git/hooks/post-checkout") << "#!/bin/sh\ntouch " << root_ << "/ran\n";
  ::chmod((project_ + "/.git/hooks/post-checkout").c_str(), 0755);
  const auto clone = make();
  ASSERT_TRUE(clone.has_value()) << clone.error().message();
  Gathered work;
  ASSERT_TRUE(clone->write(TreeKind::kWork, work, soon()).has_value());
  EXPECT_EQ(work.contents["plain"], "$Id$\n");
  EXPECT_FALSE(fs::exists(root_ + "/ran"));
}

TEST_F(CloneTest, RefusesWhatWouldBecomeSomethingElse) {
  for (const char* target : {"/etc/passwd", "../outside", "sub/../../outside", "sub/../code.cc"}) {
    fs::remove_all(place());
    fs::remove(project_ + "/out");
    fs::create_symlink(target, project_ + "/out");
    commit();
    EXPECT_THAT(refusal(TreeKind::kWork),
                HasSubstr("/out': the link to '" + std::string(target) + "' leaves the checkout, refusing"));
  }
  fs::remove(project_ + "/out");
  fs::remove_all(place());
  write("big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n");
  commit();
  EXPECT_THAT(refusal(TreeKind::kWork), HasSubstr("/big.bin': it is a pointer of Git LFS"));
  fs::remove(project_ + "/big.bin");
  commit();
  fs::remove_all(place());
  const auto head = run_git({.folder = project_, .arguments = {"rev-parse", "HEAD"}}, soon());
  git({"update-index", "--add", "--cacheinfo", "160000," + head->out.substr(0, 40) + ",module"});
  git({"commit", "--quiet", "--message=module"});
  EXPECT_THAT(refusal(TreeKind::kWork), HasSubstr("project/module': it is a submodule, refusing"));
}

TEST_F(CloneTest, RefusesWhatIsPutIntoItLater) {
  const auto clone = make();
  ASSERT_TRUE(clone.has_value()) << clone.error().message();
  EXPECT_EQ(refusal(*clone, TreeKind::kWork), "");
  EXPECT_EQ(refusal(*clone, TreeKind::kMetadata), "");
  fs::create_hard_link(place() + "/code.cc", root_ + "/private/other");
  EXPECT_THAT(refusal(*clone, TreeKind::kWork), HasSubstr("clone/code.cc': it is a hard link"));
  fs::remove(root_ + "/private/other");
  ::mkfifo((place() + "/pipe").c_str(), 0600);
  EXPECT_THAT(refusal(*clone, TreeKind::kWork), HasSubstr("clone/pipe': it is a special file"));
  fs::remove(place() + "/pipe");
  fs::create_symlink("HEAD", place() + "/.git/link");
  EXPECT_THAT(refusal(*clone, TreeKind::kMetadata), HasSubstr(".git/link': it is a link, and metadata holds none"));
  fs::remove(place() + "/.git/link");
  std::ofstream(place() + "/.git/objects/info/alternates") << "/elsewhere\n";
  EXPECT_THAT(refusal(*clone, TreeKind::kMetadata), HasSubstr("info/alternates': the repository borrows objects"));
}

TEST_F(CloneTest, KnowsWhenItWasReplaced) {
  const auto clone = make();
  ASSERT_TRUE(clone.has_value());
  EXPECT_TRUE(clone->verify().has_value());
  const auto record = decode_clone(encode(clone->record()));
  ASSERT_TRUE(record.has_value());
  EXPECT_TRUE(Clone::reopen(*record).has_value());
  // Its metadata alone.
  fs::rename(place() + "/.git", root_ + "/private/git");
  fs::copy(root_ + "/private/git", place() + "/.git", fs::copy_options::recursive);
  EXPECT_THAT(clone->verify().error().message(), HasSubstr("/.git': another folder stands there now, refusing"));
  EXPECT_FALSE(Clone::reopen(*record).has_value());
  fs::remove_all(place() + "/.git");
  fs::rename(root_ + "/private/git", place() + "/.git");
  EXPECT_TRUE(clone->verify().has_value());
  // The whole; by a copy, and by a link to what was made.
  fs::rename(place(), root_ + "/private/moved");
  fs::copy(root_ + "/private/moved", place(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  EXPECT_THAT(clone->verify().error().message(), HasSubstr("another folder stands there now, refusing"));
  fs::remove_all(place());
  fs::create_directory_symlink(root_ + "/private/moved", place());
  EXPECT_FALSE(clone->verify().has_value());
}

TEST_F(CloneTest, TakesNoObjectsThatAreBorrowed) {
  const std::string other = root_ + "/other";
  fs::copy(project_, other, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  std::ofstream(other + "/.git/objects/info/alternates") << project_ << "/.git/objects\n";
  const auto clone = Clone::make(other, place(), soon());
  ASSERT_FALSE(clone.has_value());
  EXPECT_THAT(clone.error().message(),
              HasSubstr("other/.git/objects/info/alternates': the repository borrows objects"));
}

// The same, were the file put there after it was looked for: git itself does not get at them.
TEST_F(CloneTest, FencesGitIn) {
  if (linux::landlock_abi() < 2) GTEST_FAIL() << "this kernel has no Landlock to show it with";
  const std::string secret = root_ + "/secret";
  std::ofstream(secret) << "ours\n";
  const auto hash = [&](std::vector<std::string> reads) {
    return run_git({.folder = project_, .arguments = {"hash-object", "--", secret}, .reads = std::move(reads)}, soon());
  };
  EXPECT_TRUE(hash({secret}).has_value());
  const auto fenced = hash({});
  ASSERT_FALSE(fenced.has_value());
  EXPECT_THAT(fenced.error().message(), HasSubstr("Permission denied"));
  const auto outside = run_git({.folder = project_, .arguments = {"init", "--quiet", root_ + "/new"}}, soon());
  EXPECT_FALSE(outside.has_value());
  EXPECT_FALSE(fs::exists(root_ + "/new/.git"));
}

TEST_F(CloneTest, TakesALinkedWorktreeWhoseRepositoryKnowsIt) {
  const std::string tree = root_ + "/tree";
  const base::Result<GitSaid> added =
      run_git({.folder = root_, .arguments = {"-C", project_, "worktree", "add", "--quiet", tree}}, soon());
  ASSERT_TRUE(added.has_value()) << added.error().message();
  const auto clone = Clone::make(tree, place(), soon());
  ASSERT_TRUE(clone.has_value()) << clone.error().message();
  EXPECT_EQ(clone->record().branch, "tree");
  // One that only says so.
  fs::create_directory(root_ + "/liar");
  fs::copy(tree + "/.git", root_ + "/liar/.git");
  const auto refused = Clone::make(root_ + "/liar", place() + "2", soon());
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("liar/.git': it leads to no repository that knows of it, refusing"));
  // And one that brings along what would have to know of it, in the project or beside it.
  for (const std::string own : {"/forged/half", "/worktrees/half"}) {
    const std::string forged = root_ + "/forged";
    fs::remove_all(forged);
    fs::remove_all(place() + "3");
    fs::create_directories(forged);
    fs::create_directories(root_ + own);
    std::ofstream(forged + "/.git") << "gitdir: " << root_ + own << "\n";
    std::ofstream(root_ + own + "/gitdir") << forged + "/.git\n";
    std::ofstream(root_ + own + "/commondir") << project_ + "/.git\n";
    std::ofstream(root_ + own + "/HEAD") << "ref: refs/heads/main\n";
    const auto borrowed = Clone::make(forged, place() + "3", soon());
    ASSERT_FALSE(borrowed.has_value()) << own;
    EXPECT_THAT(borrowed.error().message(), HasSubstr("it leads to no repository that knows of it, refusing"));
  }
}

TEST_F(CloneTest, RefusesAProjectWithoutACommit) {
  fs::create_directory(root_ + "/empty");
  EXPECT_FALSE(Clone::make(root_ + "/empty", place(), soon()).has_value());
  fs::remove_all(place());
  const auto said = run_git({.folder = root_ + "/empty", .arguments = {"init", "--quiet", "."}}, soon());
  ASSERT_TRUE(said.has_value());
  const auto clone = Clone::make(root_ + "/empty", place(), soon());
  ASSERT_FALSE(clone.has_value());
  EXPECT_THAT(clone.error().message(), HasSubstr("it has no commit, refusing"));
}

TEST(StaysInsideTest, JudgesLinksByTheirText) {
  for (const auto& [link, target] : std::vector<std::pair<const char*, const char*>>{
           {"a", "b"}, {"a/b/c", "../../x"}, {"a/b", "../x/y"}, {"a", "./b//c"}, {"a/b", ".."}}) {
    EXPECT_TRUE(stays_inside(link, target)) << target;
  }
  for (const auto& [link, target] : std::vector<std::pair<const char*, const char*>>{
           {"a", "/b"}, {"a", ".."}, {"a/b", "../../x"}, {"a", "b/../c"}, {"a", ""}}) {
    EXPECT_FALSE(stays_inside(link, target)) << target;
  }
}

}  // namespace
}  // namespace belljar::workspace
