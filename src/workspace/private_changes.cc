#include "workspace/private_changes.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <string>

#include "base/path.h"
#include "workspace/tree_walk.h"

namespace belljar::workspace {
namespace {

constexpr uint64_t kBelowWithoutLinks = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

class Lister : public TreeVisitor {
 public:
  Lister(std::string target, int lower, Settled& out) : target_(std::move(target)), lower_(lower), out_(out) {}

  bool on_entry(const TreeEntry& entry) override {
    const std::string path = entry.path();
    const bool was_there = base::open_resolved(lower_, path, O_PATH | O_NOFOLLOW, kBelowWithoutLinks).has_value();
    // A folder is copied up when something in it changes: what that is comes next.
    if (entry.type == DT_DIR) {
      if (!was_there) add(path + "/", ChangeKind::kAdded);
      return true;
    }
    add(path, is_whiteout(entry) ? ChangeKind::kRemoved : was_there ? ChangeKind::kChanged : ChangeKind::kAdded);
    return false;
  }
  bool on_repository(int /*folder*/, std::string_view /*path*/) override { return true; }
  void on_unseen(std::string_view path, int code) override {
    out_.add_note(base::system_error("list the changes in", target_ + "/" + std::string(path.substr(0, 512)), code)
                      .error()
                      .message());
  }

 private:
  // overlayfs.rst, "whiteouts and opaque directories".
  static bool is_whiteout(const TreeEntry& entry) {
    struct stat found{};
    return entry.type == DT_CHR && ::fstatat(entry.folder, entry.name.data(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
           found.st_rdev == 0;
  }
  void add(const std::string& path, ChangeKind kind) { out_.add(Change{target_ + "/" + path, kind}); }

  std::string target_;
  int lower_;
  Settled& out_;
};

}  // namespace

base::Status list_changes(const PrivateCopy& copy, int scratch, const base::Deadline& deadline, Settled& out) {
  if (scratch < 0) return base::refuse("list the changes in", copy.target, "the copy is gone");
  // None when the launch did not come to it, or the kernel makes no overlay and the folder was read-only.
  const auto upper = base::open_resolved(scratch, copy.upper, O_RDONLY | O_DIRECTORY, kBelowWithoutLinks);
  if (!upper) return upper.error().code == ENOENT ? base::Status{} : std::unexpected(upper.error());
  BELLJAR_ASSIGN(const base::Fd lower, base::open_resolved(AT_FDCWD, copy.target, O_PATH | O_DIRECTORY,
                                                           RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
  Lister lister(copy.target, lower.get(), out);
  return walk_tree(upper->get(), lister, {.deadline = deadline, .force_own = true});
}

}  // namespace belljar::workspace
