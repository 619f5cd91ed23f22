#include "workspace/work_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/temp_tree.h"
#include "workspace/private_git.h"
#include "workspace/work_commit.h"

namespace belljar::workspace {
namespace {

namespace fs = std::filesystem;
using base::TarEntry;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

base::Deadline soon() {
  return base::Deadline::after(std::chrono::seconds(60));
}

class WorkManifestTest : public ::testing::Test {
 protected:
  WorkManifestTest() {
    fs::create_directory(root_ + "/project");
    git({"init", "--quiet", "--initial-branch=main", "."});
    write("a.txt", "a\n");
    write("b/c.txt", "c\n");
    fs::create_symlink("a.txt", root_ + "/project/link");
    git({"add", "--all"});
    git({"commit", "--quiet", "--message=first"});
    auto clone = Clone::make(root_ + "/project", root_ + "/clone", soon());
    EXPECT_TRUE(clone.has_value()) << clone.error().message();
    clone_ = std::make_unique<Clone>(std::move(*clone));
    // As it was seeded.
    put({.kind = TarEntry::Kind::kFolder, .path = ".git", .mode = 0755});
    put({.kind = TarEntry::Kind::kFolder, .path = "b", .mode = 0755});
  }

  std::string git(std::vector<std::string> words, const std::string& folder = "/project") const {
    const auto said = run_git({.folder = root_ + folder,
                               .arguments = std::move(words),
                               .reads = {root_},
                               .environment = {"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A",
                                               "GIT_COMMITTER_EMAIL=a@b"}},
                              soon());
    EXPECT_TRUE(said.has_value()) << said.error().message();
    return said ? said->out : "";
  }
  void write(const std::string& name, std::string_view text) const {
    fs::create_directories(fs::path(root_ + "/project/" + name).parent_path());
    std::ofstream(root_ + "/project/" + name) << text;
  }
  void put(const TarEntry& entry) { base::append_tar_header(archive_, entry); }
  void put(const std::string& path, std::string_view text, uint32_t mode = 0644) {
    put({.path = path, .mode = mode, .size = text.size()});
    archive_ += text;
    archive_ += base::tar_padding(text.size());
  }
  void put_unchanged(bool link = true) {
    put("a.txt", "a\n");
    put("b/c.txt", "c\n");
    if (link) put({.kind = TarEntry::Kind::kLink, .path = "link", .mode = 0777, .target = "a.txt"});
  }
  base::Result<Manifest> manifest() const {
    BELLJAR_ASSIGN(BaseTree tree, clone_->tree(soon()));
    BELLJAR_ASSIGN(const auto maker, ManifestMaker::make(clone_->record().commit, std::move(tree), root_));
    base::TarReader reader(*maker);
    std::string archive = archive_;
    base::append_tar_end(archive);
    BELLJAR_TRY(reader.take(archive));
    return maker->finish();
  }
  // The one objection, as text.
  std::string objection() const {
    const auto made = manifest();
    if (!made) return made.error().message();
    if (made->objections.size() != 1) return std::to_string(made->objections.size()) + " objections";
    const auto commit = WorkCommit::make(*clone_, *made, words(), root_ + "/commit", soon());
    EXPECT_FALSE(commit.has_value());
    return commit ? "" : commit.error().message();
  }
  static CommitWords words() { return {"belljar/x", "Task", "task@localhost", "Do it\n", 1'700'000'000}; }

  const base::TempTree tree_;
  const std::string root_ = tree_.path();
  std::unique_ptr<Clone> clone_;
  std::string archive_;
};

TEST_F(WorkManifestTest, FindsNothingInWhatWasSeeded) {
  put_unchanged();
  const auto made = manifest();
  ASSERT_TRUE(made.has_value()) << made.error().message();
  EXPECT_THAT(made->changes, IsEmpty());
  EXPECT_THAT(made->objections, IsEmpty());
  const auto commit = WorkCommit::make(*clone_, *made, words(), root_ + "/commit", soon());
  ASSERT_FALSE(commit.has_value());
  EXPECT_THAT(commit.error().message(), HasSubstr("nothing was changed, refusing"));
}

TEST_F(WorkManifestTest, MakesACommitOfExactlyTheChanges) {
  put("a.txt", "other\n", 04755);
  // b/c.txt is gone, and a link became a file; names that git would quote.
  put("link", "no link\n");
  put("new \"quoted\"\nname", "n\n");
  put({.kind = TarEntry::Kind::kLink, .path = "b/up", .mode = 0777, .target = "../a.txt"});
  put(".gitattributes", "* filter=evil ident\n");
  const auto made = manifest();
  ASSERT_TRUE(made.has_value()) << made.error().message();
  std::string list;
  for (const WorkChange& one : made->changes) list += "AMD"[static_cast<size_t>(one.kind)] + (" " + one.path) + ";";
  EXPECT_EQ(list, "A .gitattributes;M a.txt;D b/c.txt;A b/up;M link;A new \"quoted\"\nname;");
  const auto commit = WorkCommit::make(*clone_, *made, words(), root_ + "/commit", soon());
  ASSERT_TRUE(commit.has_value()) << commit.error().message();
  const auto diff = commit->diff(1 << 20, soon());
  ASSERT_TRUE(diff.has_value());
  EXPECT_THAT(diff->out, AllOf(HasSubstr("+other"), HasSubstr("new mode 100755"), HasSubstr("deleted file")));
  const auto cut = commit->diff(20, soon());
  EXPECT_TRUE(cut->was_cut);
  EXPECT_EQ(cut->out.size(), 20U);
  ASSERT_TRUE(commit->bundle(root_ + "/out.bundle", soon()).has_value());
  EXPECT_FALSE(commit->bundle(root_ + "/out.bundle", soon()).has_value()) << "it must be a new file";
  fs::create_directory_symlink(root_, root_ + "/led");
  const auto led = commit->bundle(root_ + "/led/other.bundle", soon());
  ASSERT_FALSE(led.has_value());
  EXPECT_THAT(led.error().message(), HasSubstr("a link is in the way; name the real path"));
  EXPECT_FALSE(fs::exists(root_ + "/other.bundle"));
  git({"fetch", "--quiet", root_ + "/out.bundle", "belljar/x:taken"});
  EXPECT_EQ(git({"rev-parse", "taken"}), commit->id() + "\n");
  EXPECT_EQ(git({"rev-parse", "taken^"}), made->base + "\n");
  EXPECT_EQ(git({"show", "taken:new \"quoted\"\nname"}), "n\n");
  EXPECT_EQ(git({"ls-tree", "taken", "a.txt", "link"}).substr(0, 6), "100755");
  EXPECT_EQ(git({"show", "taken:b/up"}), "../a.txt");
  EXPECT_EQ(git({"log", "-1", "--format=%an <%ae> %at %B", "taken"}), "Task <task@localhost> 1700000000 Do it\n\n");
}

TEST_F(WorkManifestTest, TellsContentsByItsDigest) {
  put_unchanged();
  const std::string before = archive_;
  put("new", "one");
  const std::string first = manifest()->digest();
  EXPECT_EQ(first, manifest()->digest());
  archive_ = before;
  put("new", "two");
  EXPECT_NE(first, manifest()->digest());
  archive_ = before;
  put("new", "one", 0755);
  EXPECT_NE(first, manifest()->digest());
}

TEST_F(WorkManifestTest, ObjectsByName) {
  put_unchanged();
  const std::string before = archive_;
  const auto with = [&](const TarEntry& entry) {
    archive_ = before;
    put(entry);
    return objection();
  };
  EXPECT_THAT(with({.kind = TarEntry::Kind::kLink, .path = "out", .target = "/etc/passwd"}),
              HasSubstr("'out': the link leaves the checkout, refusing"));
  EXPECT_THAT(with({.kind = TarEntry::Kind::kFolder, .path = "sub/.git", .mode = 0755}),
              HasSubstr("'sub/.git': it is a repository of the agent's, refusing"));
  EXPECT_THAT(with({.path = "sub/.GIT", .mode = 0644}), HasSubstr("it is a repository of the agent's"));
  EXPECT_THAT(with({.path = "sub/.g\u200cit/config", .mode = 0644}), HasSubstr("it is a repository of the agent's"));
  EXPECT_THAT(with({.path = ".git/config", .mode = 0644}), HasSubstr("where the metadata is mounted"));
  EXPECT_THAT(with({.path = "bad\xff", .mode = 0644}), HasSubstr("'bad\\xff': its name is not UTF-8, refusing"));
  // Kinds that the writer does not make.
  for (const auto& [type, why] : std::vector<std::pair<char, const char*>>{
           {'1', "it is a hard link"}, {'3', "it is a special file"}, {'6', "it is a special file"}}) {
    archive_ = before;
    const size_t at = archive_.size();
    put({.path = "odd", .mode = 0644});
    archive_[at + 156] = type;
    uint64_t sum = 0;
    for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(archive_[at + i]);
    for (size_t i = 6; i-- > 0; sum >>= 3U) archive_[at + 148 + i] = static_cast<char>('0' + (sum & 7U));
    EXPECT_THAT(objection(), HasSubstr(std::string("'odd': ") + why)) << type;
  }
}

TEST_F(WorkManifestTest, RefusesTooManyChanges) {
  put_unchanged();
  for (size_t i = 0; i < kMostChanges; ++i) put("n" + std::to_string(i), "");
  EXPECT_TRUE(manifest().has_value());
  put("one-more", "");
  EXPECT_THAT(objection(), HasSubstr("there are more than 10000 changes, refusing"));
}

class MetadataTest : public WorkManifestTest, public TreeSink {
 protected:
  base::Status write(std::string_view bytes) override {
    metadata_ += bytes;
    return {};
  }
  base::Status send(int, uint64_t) override { return base::refuse("send", "", "not expected of small files"); }
  std::string check(const std::string& archive) {
    MetadataCheck check(*clone_);
    base::TarReader reader(check);
    if (auto status = reader.take(archive); !status) return status.error().message();
    const auto status = check.finish(soon());
    return status ? "" : status.error().message();
  }
  std::string metadata_;
};

TEST_F(MetadataTest, IsAsItWasSeededOrRefused) {
  ASSERT_TRUE(clone_->write(TreeKind::kMetadata, *this, soon()).has_value());
  EXPECT_EQ(check(metadata_), "");
  std::string changed = metadata_;
  const size_t head = changed.find("ref: refs/heads/main");
  ASSERT_NE(head, std::string::npos);
  changed.replace(head, 20, "ref: refs/heads/evil");
  EXPECT_THAT(check(changed), HasSubstr("'HEAD': agent commits: it is not as it was seeded, refusing"));
  changed = metadata_;
  changed.replace(changed.find("bare = false"), 12, "bare = true ");
  EXPECT_THAT(check(changed), HasSubstr("'config': metadata changed: it is not as it was seeded, refusing"));
  changed = metadata_.substr(0, metadata_.size() - 1024);
  base::append_tar_header(changed, {.path = "hooks-more", .mode = 0644});
  base::append_tar_end(changed);
  EXPECT_THAT(check(changed), HasSubstr("'hooks-more': metadata changed"));
  std::string nothing;
  base::append_tar_end(nothing);
  EXPECT_THAT(check(nothing), HasSubstr("something was removed, refusing"));
}

}  // namespace
}  // namespace belljar::workspace
