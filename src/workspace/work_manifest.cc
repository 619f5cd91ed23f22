#include "workspace/work_manifest.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sha1.h>
#include <sha2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/io.h"
#include "base/pack.h"
#include "base/path.h"
#include "base/text.h"

namespace belljar::workspace {
namespace {

constexpr std::string_view kReading = "read the task's work";
constexpr uint32_t kFile = 0100644;
constexpr uint32_t kProgram = 0100755;
constexpr uint32_t kLink = 0120000;
constexpr size_t kMostDifferences = 20;

class Sha256 {
 public:
  Sha256() { ::SHA256Init(&context_); }
  void add(std::string_view bytes) {
    ::SHA256Update(&context_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::string end() {
    std::array<char, SHA256_DIGEST_STRING_LENGTH> text{};
    return ::SHA256End(&context_, text.data());
  }

 private:
  SHA2_CTX context_{};
};

class Sha1 {
 public:
  Sha1() { ::SHA1Init(&context_); }
  void add(std::string_view bytes) {
    ::SHA1Update(&context_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::string end() {
    std::array<char, SHA1_DIGEST_STRING_LENGTH> text{};
    return ::SHA1End(&context_, text.data());
  }

 private:
  SHA1_CTX context_{};
};

// What git takes for its own folder, on any file system that a checkout may land on (git's is_ntfs_dotgit and
// is_hfs_dotgit): by case, trailing dots and spaces, the short name, and characters that HFS+ ignores.
bool is_git_folder(std::string_view name) {
  std::string plain;
  for (const char c : name) plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view ignored :
       {"\u200c", "\u200d", "\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u206a", "\u206b",
        "\u206c", "\u206d", "\u206e", "\u206f", "\ufeff"}) {
    for (size_t at = plain.find(ignored); at != std::string::npos; at = plain.find(ignored)) {
      plain.erase(at, ignored.size());
    }
  }
  plain = plain.substr(0, plain.find(':'));
  plain = plain.substr(0, plain.find('\\'));
  while (plain.ends_with('.') || plain.ends_with(' ')) plain.pop_back();
  return plain == ".git" || plain == "git~1";
}

// The path's part up to the first such name; empty when there is none.
std::string git_folder_of(std::string_view path) {
  size_t end = 0;
  for (const std::string_view part : base::split(path, '/')) {
    end += part.size();
    if (is_git_folder(part)) return std::string(path.substr(0, end));
    ++end;
  }
  return {};
}

}  // namespace

// A blob's id as git makes it, and the content's own digest.
struct ManifestMaker::Hash {
  Hash(size_t id_size, uint64_t size) : long_id(id_size == 64) {
    const std::string head = "blob " + std::to_string(size) + std::string(1, '\0');
    git1.add(head);
    git256.add(head);
  }
  void add(std::string_view bytes) {
    if (long_id) {
      git256.add(bytes);
    } else {
      git1.add(bytes);
    }
    content.add(bytes);
  }
  std::string id() { return long_id ? git256.end() : git1.end(); }

  bool long_id;
  Sha1 git1;
  Sha256 git256;
  Sha256 content;
};

std::string Manifest::digest() const {
  std::string packed;
  base::pack_text(packed, "belljar manifest 1");
  base::pack_text(packed, base);
  for (const WorkChange& one : changes) {
    base::pack_number(packed, static_cast<uint64_t>(one.kind));
    base::pack_text(packed, one.path);
    base::pack_number(packed, one.mode);
    base::pack_number(packed, one.size);
    base::pack_text(packed, one.sha256);
  }
  base::pack_text(packed, "objections");
  for (const Objection& one : objections) {
    base::pack_text(packed, one.path);
    base::pack_text(packed, one.reason);
  }
  Sha256 out;
  out.add(packed);
  return out.end();
}

ManifestMaker::ManifestMaker(std::string base, BaseTree tree, base::Fd content) : tree_(std::move(tree)) {
  out_.base = std::move(base);
  out_.content = std::move(content);
}

ManifestMaker::~ManifestMaker() = default;

base::Result<std::unique_ptr<ManifestMaker>> ManifestMaker::make(std::string base, BaseTree tree,
                                                                 const std::string& content_folder) {
  base::Fd content(::open(content_folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!content) return base::system_error(kReading, content_folder, errno);
  return std::unique_ptr<ManifestMaker>(new ManifestMaker(std::move(base), std::move(tree), std::move(content)));
}

base::Status ManifestMaker::count_one() {
  if (++count_ <= kMostChanges) return {};
  return base::refuse(kReading, "", "there are more than " + std::to_string(kMostChanges) + " changes, refusing",
                      "what a build has made is one, too: have it removed first");
}

base::Status ManifestMaker::object(std::string path, std::string_view reason) {
  BELLJAR_TRY(count_one());
  tree_.erase(path);
  out_.objections.push_back({std::move(path), std::string(reason)});
  return {};
}

base::Status ManifestMaker::begin(std::string path, uint32_t mode, uint64_t size) {
  const auto found = tree_.find(path);
  before_.reset();
  if (found != tree_.end()) {
    before_ = std::move(found->second);
    tree_.erase(found);
  }
  hash_ = std::make_unique<Hash>(out_.base.size(), size);
  now_ = WorkChange{.kind = before_ ? WorkChange::Kind::kModified : WorkChange::Kind::kAdded,
                    .path = std::move(path),
                    .mode = mode,
                    .size = size,
                    .at = content_size_};
  return {};
}

base::Status ManifestMaker::on_entry(const base::TarEntry& entry) {
  now_.reset();
  const bool folder = entry.kind == base::TarEntry::Kind::kFolder;
  if (folder && entry.path == ".git") return {};
  if (std::string repository = git_folder_of(entry.path); !repository.empty()) {
    // Once, however much is in it.
    if (!repositories_.insert(repository).second) return {};
    const bool in_place = repository == ".git";
    return object(std::move(repository),
                  in_place ? "something lies where the metadata is mounted" : "it is a repository of the agent's");
  }
  switch (entry.kind) {
    case base::TarEntry::Kind::kFolder:
      return {};
    case base::TarEntry::Kind::kFile:
      return begin(entry.path, (entry.mode & 0100U) != 0 ? kProgram : kFile, entry.size);
    case base::TarEntry::Kind::kLink:
      if (!stays_inside(entry.path, entry.target)) return object(entry.path, "the link leaves the checkout");
      BELLJAR_TRY(begin(entry.path, kLink, entry.target.size()));
      return on_bytes(entry.target);
    case base::TarEntry::Kind::kHardLink:
      return object(entry.path, "it is a hard link");
    default:
      return object(entry.path, "it is a special file");
  }
}

base::Status ManifestMaker::on_bytes(std::string_view bytes) {
  if (!now_) return {};
  hash_->add(bytes);
  const uint64_t at = content_size_;
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(out_.content.get(), bytes.data(), bytes.size(), static_cast<off_t>(content_size_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return base::system_error(kReading, now_->path, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
    content_size_ += static_cast<uint64_t>(n);
  }
  return content_size_ >= at ? base::Status{} : base::system_error(kReading, now_->path, EOVERFLOW);
}

base::Status ManifestMaker::on_end() {
  if (!now_) return {};
  // Of a file's permissions only the owner's right to execute counts; old repositories have others, too (0100664).
  constexpr uint32_t kCounts = 0170100;
  const bool same = before_ && (before_->mode & kCounts) == (now_->mode & kCounts) && before_->id == hash_->id();
  WorkChange change = std::move(*now_);
  now_.reset();
  if (same) {
    content_size_ = change.at;  // the next one's content goes over it
    return {};
  }
  if (!base::is_utf8(change.path)) {
    content_size_ = change.at;
    return object(std::move(change.path), "its name is not UTF-8");
  }
  BELLJAR_TRY(count_one());
  change.sha256 = hash_->content.end();
  out_.changes.push_back(std::move(change));
  return {};
}

base::Result<Manifest> ManifestMaker::finish() {
  for (const auto& [path, entry] : tree_) {
    BELLJAR_TRY(count_one());
    if (base::is_utf8(path)) {
      out_.changes.push_back({.kind = WorkChange::Kind::kDeleted, .path = path});
    } else {
      out_.objections.push_back({path, "its name is not UTF-8"});
    }
  }
  std::ranges::sort(out_.changes, {}, &WorkChange::path);
  std::ranges::sort(out_.objections, {}, &Objection::path);
  const auto twice = std::ranges::adjacent_find(out_.changes, {}, &WorkChange::path);
  if (twice != out_.changes.end()) return base::refuse(kReading, twice->path, "the archive has it twice, refusing");
  if (::ftruncate(out_.content.get(), static_cast<off_t>(content_size_)) != 0) {
    return base::system_error(kReading, "", errno);
  }
  return std::move(out_);
}

void MetadataCheck::differs(const std::string& path) {
  if (different_.size() < kMostDifferences) different_.push_back(path);
}

base::Status MetadataCheck::on_entry(const base::TarEntry& entry) {
  path_ = entry.path;
  file_.reset();
  same_ = true;
  if (!met_.insert(path_).second) same_ = false;
  const bool folder = entry.kind == base::TarEntry::Kind::kFolder;
  if (!folder && entry.kind != base::TarEntry::Kind::kFile) same_ = false;
  auto ours =
      base::open_resolved(clone_.metadata(), path_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | (folder ? O_DIRECTORY : 0),
                          RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
  struct stat found{};
  if (!ours || ::fstat(ours->get(), &found) != 0) {
    same_ = false;
  } else if (!folder) {
    if (!S_ISREG(found.st_mode) || static_cast<uint64_t>(found.st_size) != entry.size) same_ = false;
    file_ = std::move(*ours);
  }
  return {};
}

base::Status MetadataCheck::on_bytes(std::string_view bytes) {
  if (!same_) return {};
  std::string ours(bytes.size(), '\0');
  same_ = base::read_exact(file_.get(), ours.data(), ours.size()) && ours == bytes;
  return {};
}

base::Status MetadataCheck::on_end() {
  if (!same_) differs(path_);
  return {};
}

base::Status MetadataCheck::finish(const base::Deadline& deadline) {
  BELLJAR_TRY(clone_.verify());
  BELLJAR_ASSIGN(const TreeSize size, clone_.measure(TreeKind::kMetadata, deadline));
  if (different_.empty() && size.files == met_.size()) return {};
  constexpr std::string_view kHint = "remove the task and make it again: its agent must not write there";
  const auto is_ref = [](const std::string& path) {
    return path == "HEAD" || path == "packed-refs" || path == "refs" || path.starts_with("refs/") ||
           path.starts_with("objects/");
  };
  const auto commit = std::ranges::find_if(different_, is_ref);
  if (commit != different_.end()) {
    return base::refuse("check the task's metadata", *commit, "agent commits: it is not as it was seeded, refusing",
                        kHint);
  }
  return base::refuse("check the task's metadata", different_.empty() ? "" : different_.front(),
                      different_.empty() ? "metadata changed: something was removed, refusing"
                                         : "metadata changed: it is not as it was seeded, refusing",
                      kHint);
}

}  // namespace belljar::workspace
