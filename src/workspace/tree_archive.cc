#include "workspace/tree_archive.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/fd.h"
#include "base/path.h"
#include "base/tar.h"
#include "base/text.h"
#include "workspace/tree_walk.h"

namespace belljar::workspace {
namespace {

constexpr uint64_t kPage = 4096;
constexpr size_t kShortLink = 128;  // a tmpfs keeps a shorter target in the inode (mm/shmem.c, SHORT_SYMLINK_LEN)
constexpr uint64_t kSmall = 65536;  // a larger file is handed to the sink as a descriptor
constexpr size_t kBuffer = size_t{256} << 10U;
constexpr uint64_t kBeneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS;
// https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md: at most 1024 bytes, and begins so.
constexpr std::string_view kLfs = "version https://git-lfs.github.com/spec/v1\n";
constexpr uint64_t kMostLfs = 1024;

class Archiver : public TreeVisitor {
 public:
  Archiver(std::string_view root, TreeKind kind, TreeSink* sink) : root_(root), kind_(kind), sink_(sink) {}

  bool on_entry(const TreeEntry& entry) override {
    if (failed_) return false;
    bool look_inside = false;
    if (auto status = add(entry, look_inside); !status) failed_ = std::move(status).error();
    return look_inside && !failed_;
  }
  bool on_repository(int, std::string_view) override { return true; }
  void on_unseen(std::string_view path, int code) override {
    if (!failed_) failed_ = base::system_error(operation(), shown(std::string(path)), code).error();
  }
  base::Status finish(bool whole);
  [[nodiscard]] const TreeSize& size() const { return size_; }

 private:
  [[nodiscard]] std::string_view operation() const {
    return kind_ == TreeKind::kWork ? "copy the checkout" : "copy the repository's metadata";
  }
  [[nodiscard]] std::string shown(const std::string& path) const { return root_ + "/" + path; }
  [[nodiscard]] std::unexpected<base::Error> no(const std::string& path, std::string_view why,
                                                std::string_view hint = {}) const {
    return base::refuse(operation(), shown(path), std::string(why) + ", refusing", hint);
  }
  base::Status add(const TreeEntry& entry, bool& look_inside);
  base::Status add_file(const TreeEntry& entry, std::string path);
  base::Status add_link(const TreeEntry& entry, std::string path);
  base::Status add_folder(const TreeEntry& entry, std::string path);
  base::Status content(int file, uint64_t size, const std::string& path);
  base::Status flush(size_t from);

  std::string root_;
  TreeKind kind_;
  TreeSink* sink_;  // null: only measure
  std::optional<base::Error> failed_;
  std::string buffer_;
  TreeSize size_;
};

base::Status Archiver::flush(size_t from) {
  if (sink_ == nullptr || buffer_.size() < from || buffer_.empty()) return {};
  auto status = sink_->write(buffer_);
  buffer_.clear();
  return status;
}

base::Status Archiver::content(int file, uint64_t size, const std::string& path) {
  if (size > kSmall) {
    BELLJAR_TRY(flush(0));
    if (auto sent = sink_->send(file, size); !sent) return sent;
  } else {
    const size_t at = buffer_.size();
    buffer_.resize(at + size);
    for (size_t done = 0; done < size;) {
      const ssize_t n = ::read(file, buffer_.data() + at + done, size - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return base::system_error(operation(), shown(path), errno);
      if (n == 0) return no(path, "it changes meanwhile");
      done += static_cast<size_t>(n);
    }
  }
  char more = 0;
  if (::read(file, &more, 1) != 0) return no(path, "it changes meanwhile");
  buffer_ += base::tar_padding(size);
  return {};
}

base::Status Archiver::add_file(const TreeEntry& entry, std::string path) {
  const auto file =
      base::open_resolved(entry.folder, std::string(entry.name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK, kBeneath);
  if (!file) return base::system_error(operation(), shown(path), file.error().code);
  struct stat found{};
  if (::fstat(file->get(), &found) != 0) return base::system_error(operation(), shown(path), errno);
  if (!S_ISREG(found.st_mode)) return no(path, "it is no regular file");
  if (found.st_nlink != 1) return no(path, "it is a hard link: another name of it may be anywhere");
  const auto size = static_cast<uint64_t>(found.st_size);
  size_.bytes += (size + kPage - 1) / kPage * kPage;
  if (kind_ == TreeKind::kWork && size >= kLfs.size() && size <= kMostLfs) {
    std::array<char, kLfs.size()> start{};
    if (::pread(file->get(), start.data(), start.size(), 0) == static_cast<ssize_t>(start.size()) &&
        std::string_view(start.data(), start.size()) == kLfs) {
      return no(path, "it is a pointer of Git LFS, whose content is not in the repository",
                "an agent would find the pointer in the file's place: commit the content, or take the file out");
    }
  }
  if (sink_ == nullptr) return {};
  base::append_tar_header(buffer_, {.path = path,
                                    .mode = (found.st_mode & S_IXUSR) != 0 ? 0755U : 0644U,
                                    .size = size,
                                    .mtime = found.st_mtim.tv_sec});
  BELLJAR_TRY(content(file->get(), size, path));
  return flush(kBuffer);
}

base::Status Archiver::add_link(const TreeEntry& entry, std::string path) {
  if (kind_ == TreeKind::kMetadata) return no(path, "it is a link, and metadata holds none");
  std::array<char, base::kMostTarPath> text{};
  const ssize_t n = ::readlinkat(entry.folder, std::string(entry.name).c_str(), text.data(), text.size());
  if (n < 0) return base::system_error(operation(), shown(path), errno);
  if (static_cast<size_t>(n) == text.size()) return no(path, "the link's target is too long");
  std::string target(text.data(), static_cast<size_t>(n));
  if (!stays_inside(path, target)) {
    return no(path, "the link to '" + base::escape(target) + "' leaves the checkout",
              "links must be relative and stay below the project's folder");
  }
  if (target.size() >= kShortLink) size_.bytes += kPage;
  if (sink_ == nullptr) return {};
  base::append_tar_header(
      buffer_,
      {.kind = base::TarEntry::Kind::kLink, .path = std::move(path), .mode = 0777, .target = std::move(target)});
  return flush(kBuffer);
}

base::Status Archiver::add_folder(const TreeEntry& entry, std::string path) {
  struct stat found{};
  if (::fstatat(entry.folder, std::string(entry.name).c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    return base::system_error(operation(), shown(path), errno);
  }
  if (sink_ == nullptr) return {};
  base::append_tar_header(
      buffer_,
      {.kind = base::TarEntry::Kind::kFolder, .path = std::move(path), .mode = 0755, .mtime = found.st_mtim.tv_sec});
  return flush(kBuffer);
}

base::Status Archiver::add(const TreeEntry& entry, bool& look_inside) {
  std::string path = entry.path();
  ++size_.files;
  const bool top = entry.folder_path.empty();
  if (kind_ == TreeKind::kMetadata) {
    if (path == "objects/info/alternates" || path == "objects/info/http-alternates") {
      return no(path, "the repository borrows objects of another one", "repack it: git repack -a -d");
    }
    if (top && entry.name == "modules") return no(path, "it has submodules");
  }
  if (path.size() >= base::kMostTarPath) return no(path, "the path is too long");
  switch (entry.type) {
    case DT_DIR:
      look_inside = kind_ == TreeKind::kMetadata || entry.name != ".git";
      if (!look_inside && !top) return no(path, "it is a repository within the repository");
      return add_folder(entry, std::move(path));
    case DT_REG:
      if (kind_ == TreeKind::kWork && entry.name == ".git") return no(path, "its metadata lies elsewhere");
      return add_file(entry, std::move(path));
    case DT_LNK:
      return add_link(entry, std::move(path));
    default:
      return no(path, "it is a special file");
  }
}

base::Status Archiver::finish(bool whole) {
  if (failed_) return std::unexpected(std::move(*failed_));
  if (!whole) return base::refuse(operation(), root_, "the time was up, refusing");
  if (sink_ == nullptr) return {};
  base::append_tar_end(buffer_);
  return flush(0);
}

base::Status walk(int folder, Archiver& archiver, const base::Deadline& deadline) {
  const auto walked = walk_tree(folder, archiver, {.deadline = deadline});
  if (!walked && walked.error().code != ETIME) return walked;
  return archiver.finish(walked.has_value() && !deadline.passed());
}

}  // namespace

base::Result<TreeSize> measure_tree(int folder, std::string_view path, TreeKind kind, const base::Deadline& deadline) {
  Archiver archiver(path, kind, nullptr);
  BELLJAR_TRY(walk(folder, archiver, deadline));
  return archiver.size();
}

base::Status write_tree(int folder, std::string_view path, TreeKind kind, TreeSink& sink,
                        const base::Deadline& deadline) {
  Archiver archiver(path, kind, &sink);
  return walk(folder, archiver, deadline);
}

bool stays_inside(std::string_view link, std::string_view target) {
  if (target.empty() || target.starts_with('/')) return false;
  // How many folders above it there are in the checkout.
  auto depth = std::ranges::count(link, '/');
  bool down = false;
  for (const std::string_view part : base::split(target, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      down = true;
    } else if (down || depth-- == 0) {
      return false;
    }
  }
  return true;
}

}  // namespace belljar::workspace
