#include "linux/chroot.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/fd.h"

namespace belljar::linux {
namespace {

std::unexpected<base::Error> failed(std::string_view what) {
  return base::system_error("leave the chroot", what, errno);
}

// A mount and a folder in it.
struct Place {
  uint64_t mount = 0;
  uint64_t inode = 0;
  bool operator==(const Place&) const = default;
};

bool look(int folder, const char* path, Place& out) {
  struct statx found{};
  if (::statx(folder, path, AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &found) != 0) return false;
  out = {found.stx_mnt_id, found.stx_ino};
  return true;
}

// `tree` becomes the root of a new mount namespace of this thread, which has nothing else.
base::Status make_root(int tree) {
  if (::unshare(CLONE_NEWNS) != 0) return failed("mount namespace");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return failed("/");
  if (::move_mount(tree, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0) return failed("/");
  if (::fchdir(tree) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0) return failed("pivot_root");
  return ::umount2(".", MNT_DETACH) == 0 ? base::Status{} : failed("the former root");
}

}  // namespace

base::Status leave_chroot() {
  const base::Fd space(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  const base::Fd root(::open("/", O_PATH | O_CLOEXEC));
  const base::Fd folder(::open(".", O_PATH | O_CLOEXEC));
  std::string path(4096, '\0');
  if (!space || !root || !folder || ::getcwd(path.data(), path.size()) == nullptr) return failed("current folder");
  path.resize(path.find('\0'));
  Place before;
  Place after;
  // Entering a mount namespace, be it the own, sets root and current folder to its root (setns(2)).
  if (!look(root.get(), "", before) || ::setns(space.get(), CLONE_NEWNS) != 0 || !look(AT_FDCWD, "/", after)) {
    return failed("mount namespace");
  }
  if (before == after) return ::fchdir(folder.get()) == 0 ? base::Status{} : failed(".");
  const base::Fd tree(::open_tree(root.get(), "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!tree) return failed("/");
  BELLJAR_TRY(make_root(tree.get()));
  // By name: the descriptor's folder is in the mount that was left.
  return ::chdir(path.c_str()) == 0 ? base::Status{} : failed(path);
}

}  // namespace belljar::linux
