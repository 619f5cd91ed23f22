#include "tiers/jail/child_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace belljar::tiers::jail {
namespace {

// In the scratch tmpfs, beside the numbered folders and files that are attached elsewhere.
constexpr const char* kEmptyFile = "empty-file";
constexpr const char* kEmptyFolder = "empty-folder";
constexpr const char* kProcParked = "proc";
constexpr const char* kGuestParked = "guest";
// The layers of a private copy, in its numbered folder.
constexpr const char* kLower = "lower";
constexpr const char* kUpper = kPrivateUpper;
constexpr const char* kWork = "work";

constexpr size_t kScratchNameSize = 24;
constexpr size_t kLayerSize = 32;

const char* joined(std::array<char, kLayerSize>& buffer, const char* folder, const char* name) {
  const size_t size = std::strlen(folder);
  std::memcpy(buffer.data(), folder, size);
  buffer[size] = '/';
  std::memcpy(buffer.data() + size + 1, name, std::strlen(name) + 1);
  return buffer.data();
}

// A link in any component would be of somebody's making: the plan holds real paths.
int open_how_fd(int folder, const char* path, uint64_t flags, uint64_t resolve) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, folder, path, &how, sizeof how));
}

struct Option {
  const char* key;
  const char* value;  // null for a flag
};

// A detached mount of a new file system, or -1 with errno.
int new_mount(const char* type, const Option* options, size_t count, uint64_t attributes) {
  const int context = ::fsopen(type, FSOPEN_CLOEXEC);
  if (context < 0) return -1;
  bool good = true;
  for (size_t i = 0; i < count && good; ++i) {
    const unsigned command = options[i].value == nullptr ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING;
    good = ::fsconfig(context, command, options[i].key, options[i].value, 0) == 0;
  }
  good = good && ::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0;
  const int mounted = good ? ::fsmount(context, FSMOUNT_CLOEXEC, static_cast<unsigned>(attributes)) : -1;
  const int code = errno;
  ::close(context);
  errno = code;
  return mounted;
}

// `every` bind has, as MOUNT_ATTR_ bits.
uint64_t attributes_of(uint64_t every, bool device, bool writable) {
  // Read-only keeps the host's node from chmod and utimes; writing to the device stays possible.
  if (device) return (every & ~uint64_t{MOUNT_ATTR_NODEV}) | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;
  return writable ? every : every | MOUNT_ATTR_RDONLY;
}

}  // namespace

int Files::open_in_root(const char* path, uint64_t flags) const {
  return open_how_fd(root_, path, flags, RESOLVE_BENEATH);
}

int Files::open_host(const char* path) const {
  return open_how_fd(AT_FDCWD, path, O_PATH, 0);
}

void Files::open_early_trees() {
  for (EarlyTree& early : child_.early) {
    const int source = open_host(early.source);
    if (source < 0) continue;
    early.tree = ::open_tree(source, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    ::close(source);
    mount_attr attributes{};
    attributes.attr_set = attributes_of(kBindAttributes, early.device, false);
    if (early.tree >= 0 &&
        ::mount_setattr(early.tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) != 0) {
      ::close(early.tree);
      early.tree = -1;
    }
  }
}

// True when the step's tree is there already, as the step wants it.
bool Files::take_early_tree(Step& step) {
  const bool device = step.op == Op::kDevice;
  if (step.idmap || (step.writable && !device)) return false;
  if (child_.program->protections.bind_attributes != kBindAttributes) return false;
  for (EarlyTree& early : child_.early) {
    if (early.tree < 0 || early.device != device || std::strcmp(early.source, step.source) != 0) continue;
    step.tree = early.tree;
    early.tree = -1;
    return true;
  }
  return false;
}

bool Files::open_tree_of(Step& step) {
  if (take_early_tree(step)) return true;
  const int source = open_host(step.source);
  if (source < 0) {
    if (errno == ENOENT && step.optional) return true;
    return fail("open", step.source, errno);
  }
  step.tree = ::open_tree(source, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  const int code = errno;
  ::close(source);
  if (step.tree < 0) return fail("clone the mount of", step.source, code);
  mount_attr attributes{};
  attributes.attr_set =
      attributes_of(child_.program->protections.bind_attributes, step.op == Op::kDevice, step.writable);
  return check(::mount_setattr(step.tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) == 0,
               "restrict the mount of", step.source);
}

// While the tree is detached: afterwards the kernel maps no more (mount_setattr(2), MOUNT_ATTR_IDMAP).
bool Files::map_ids_of(const Step& step, int id_map) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<uint64_t>(id_map);
  return check(::mount_setattr(step.tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) == 0,
               "map the ids of", step.source);
}

// Before anything is attached, so that no path of the host is looked up through what the guest gets.
bool Files::open_trees() {
  for (Step& step : child_.program->steps) {
    if ((step.op == Op::kBind || step.op == Op::kDevice) && !open_tree_of(step)) return false;
  }
  return open_guest();
}

bool Files::open_guest() {
  const int source = open_host(child_.guest_path);
  if (source < 0) return fail("open", child_.guest_path, errno);
  struct stat found{};
  if (::fstat(source, &found) != 0 || found.st_dev != child_.guest_device || found.st_ino != child_.guest_inode) {
    return fail("open", child_.guest_path, ESTALE);
  }
  guest_ = ::open_tree(source, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  const int code = errno;
  ::close(source);
  if (guest_ < 0) return fail("clone the mount of", child_.guest_path, code);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  return check(::mount_setattr(guest_, "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0, "make read-only",
               child_.guest_path);
}

bool Files::make_mounts() {
  const std::array<Option, 3> root{{{"mode", "0755"}, {"size", "16m"}, {"nr_inodes", "8192"}}};
  root_ = new_mount("tmpfs", root.data(), root.size(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (root_ < 0) return fail("mount the guest's root", "tmpfs", errno);
  new_proc_ = new_mount("proc", nullptr, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  if (new_proc_ < 0) return fail("mount the guest's proc", "proc", errno);
  const std::array<Option, 3> pts{{{"newinstance", nullptr}, {"ptmxmode", "0666"}, {"mode", "0620"}}};
  new_pts_ = new_mount("devpts", pts.data(), pts.size(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  return new_pts_ >= 0 || fail("mount the guest's terminals", "devpts", errno);
}

// On top of the host's root, which exists whatever else does; looked up paths still start below it.
bool Files::attach_root() {
  return check(::move_mount(root_, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) == 0, "attach", "/");
}

// A detached tree is unmounted when its descriptor goes, and that waits for every processor of the machine. Attached to
// scratch it goes with the host's root, in the same wait; its descriptor works all the same.
bool Files::park(int tree, const char* name) {
  return check(::move_mount(tree, "", scratch_, name, MOVE_MOUNT_F_EMPTY_PATH) == 0, "attach", name);
}

// Over the host's /proc, which nothing looks at any more: attached, since before Linux 6.15 a detached tree cannot be
// cloned from, and gone together with the host's root.
bool Files::make_scratch() {
  std::array<char, 32> size{};
  std::array<char, 32> files{};
  // Open to all, so that only Landlock can keep init out of it, which the probe tries. The agent never sees this
  // folder.
  const std::array<Option, 3> options{{{"mode", "0777"},
                                       {"size", numbered(size, "", child_.program->scratch_bytes)},
                                       {"nr_inodes", numbered(files, "", child_.program->scratch_files)}}};
  scratch_ = new_mount("tmpfs", options.data(), options.size(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (scratch_ < 0) return fail("mount the guest's scratch", "tmpfs", errno);
  return check(::move_mount(scratch_, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) == 0, "attach", "/proc") &&
         make_file(scratch_, kEmptyFile, "", 0444, false) && make_file(scratch_, kGuestParked, "", 0444, false) &&
         park(guest_, kGuestParked) &&
         check(::mkdirat(scratch_, kEmptyFolder, 0555) == 0, "make a folder", kEmptyFolder) &&
         make_template(kEmptyFile) && make_template(kEmptyFolder);
}

// Mounts it over itself, read-only: each clone of it then comes read-only.
bool Files::make_template(const char* name) {
  const int at = ::openat(scratch_, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (at < 0) return fail("open", name, errno);
  const bool good = clone_over(scratch_, name, at, name, MOUNT_ATTR_RDONLY);
  ::close(at);
  return good;
}

bool Files::make_folder(int folder, const Step& step) {
  if (!check(::mkdirat(folder, step.target, step.mode) == 0 || errno == EEXIST, "make a folder", step.target)) {
    return false;
  }
  if (!step.owned || !base_.privileged) return true;
  return check(::fchownat(folder, step.target, child_.program->identity.host_uid, child_.program->identity.host_gid,
                          AT_SYMLINK_NOFOLLOW) == 0,
               "give to the guest", step.target);
}

bool Files::make_file(int folder, const char* path, std::string_view text, mode_t mode, bool owned) {
  open_how how{};
  how.flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const int file = static_cast<int>(::syscall(SYS_openat2, folder, path, &how, sizeof how));
  if (file < 0) return fail("make a file", path, errno);
  bool good = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (owned && base_.privileged) {
    good = good && ::fchown(file, child_.program->identity.host_uid, child_.program->identity.host_gid) == 0;
  }
  const int code = errno;
  ::close(file);
  return good || fail("write", path, code);
}

bool Files::attach(int tree, const Step& step) {
  // A last component that is a link is not followed without MOVE_MOUNT_T_SYMLINKS.
  if (step.own_way) {
    return check(::move_mount(tree, "", root_, step.target, MOVE_MOUNT_F_EMPTY_PATH) == 0, "attach", step.target);
  }
  const int at = open_in_root(step.target, O_PATH);
  if (at < 0) return fail("open in the guest", step.target, errno);
  const bool good = ::move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
  const int code = errno;
  ::close(at);
  return good || fail("attach", step.target, code);
}

// A clone of what lies at `path` of the attached mount `folder`, with `attributes` added, over the open `target`.
bool Files::clone_over(int folder, const char* path, int target, const char* name, uint64_t attributes) {
  const int tree = ::open_tree(
      folder, path, AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
  if (tree < 0) return fail("clone the mount of", name, errno);
  mount_attr change{};
  change.attr_set = attributes;
  const bool good =
      (attributes == 0 ||
       check(::mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &change, sizeof change) == 0, "restrict", name)) &&
      check(::move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0, "attach", name);
  ::close(tree);
  return good;
}

bool Files::attach_scratch(const Step& step) {
  std::array<char, kScratchNameSize> name{};
  Step made = step;
  made.target = numbered(name, "", number_of(*child_.program, step));
  if (!make_folder(scratch_, made)) return false;
  const int tree = ::open_tree(scratch_, made.target, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
  if (tree < 0) return fail("clone the mount of", step.target, errno);
  const bool good = attach(tree, step);
  ::close(tree);
  return good;
}

// Opens what lies at the step's target; -1 without a failure when nothing does and nothing has to.
bool Files::open_target(const Step& step, bool may_be_missing, int& at) {
  at = open_in_root(step.target, O_PATH);
  return at >= 0 || (errno == ENOENT && may_be_missing) || fail("open in the guest", step.target, errno);
}

bool Files::attach_file(const Step& step) {
  int at = -1;
  if (!open_target(step, step.optional, at)) return false;
  if (at < 0) return true;
  std::array<char, kScratchNameSize> name{};
  const char* file = numbered(name, "", number_of(*child_.program, step));
  const bool good = make_file(scratch_, file, {step.source, step.size}, 0644, false) &&
                    clone_over(scratch_, file, at, step.target, MOUNT_ATTR_RDONLY);
  ::close(at);
  return good;
}

bool Files::attach_mask(const Step& step) {
  if (step.own_way) return attach_mask_by_name(step);
  int at = -1;
  if (!open_target(step, true, at)) return false;
  if (at < 0) return true;  // nothing there to hide
  struct stat found{};
  const bool good = check(::fstat(at, &found) == 0, "hide", step.target) &&
                    clone_over(scratch_, S_ISDIR(found.st_mode) ? kEmptyFolder : kEmptyFile, at, step.target, 0);
  ::close(at);
  return good;
}

bool Files::attach_mask_by_name(const Step& step) {
  struct stat found{};
  if (::fstatat(root_, step.target, &found, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT || fail("hide", step.target, errno);
  }
  if (S_ISLNK(found.st_mode)) return fail("hide", step.target, ELOOP);
  const int tree = ::open_tree(scratch_, S_ISDIR(found.st_mode) ? kEmptyFolder : kEmptyFile,
                               OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
  if (tree < 0) return fail("clone the mount of", step.target, errno);
  const bool good = attach(tree, step);
  ::close(tree);
  return good;
}

bool Files::attach_read_only(const Step& step) {
  int at = -1;
  if (step.link) {
    at = open_in_root(step.target, O_PATH | O_NOFOLLOW);
    struct stat found{};
    if (at < 0 || ::fstat(at, &found) != 0) return fail("open in the guest", step.target, errno);
    if (!S_ISLNK(found.st_mode)) return fail("open in the guest", step.target, ESTALE);
  } else if (!open_target(step, step.optional, at)) {
    return false;
  }
  if (at < 0) return true;
  // A mount point can be neither renamed nor removed nor replaced; a link that is one is followed as before.
  const bool good = clone_over(at, "", at, step.target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  ::close(at);
  return good;
}

// The three folders of an overlay, in a folder of the scratch tmpfs: what it lies on, what is written, and the
// kernel's.
bool Files::make_layers(int folder, int below, const Step& step) {
  struct stat found{};
  const bool good =
      check(::fstat(below, &found) == 0, "look at", step.target) &&
      check(::mkdirat(folder, kLower, 0700) == 0 && ::mkdirat(folder, kUpper, found.st_mode & 07777U) == 0 &&
                ::mkdirat(folder, kWork, 0700) == 0,
            "make the layers of", step.target);
  // The overlay's own folder shows owner and mode of the upper layer's.
  return good && (!base_.privileged || check(::fchownat(folder, kUpper, found.st_uid, found.st_gid, 0) == 0,
                                             "give to the guest", step.target));
}

// A detached overlay of the layers in the scratch folder `name`, or -1 with errno.
int Files::new_overlay(const char* name) {
  std::array<char, kLayerSize> lower{};
  std::array<char, kLayerSize> upper{};
  std::array<char, kLayerSize> work{};
  // Relative to the current folder: no path leads to scratch once the new root is on top.
  const std::array<Option, 5> options{{{"source", "private"},
                                       {"lowerdir", joined(lower, name, kLower)},
                                       {"upperdir", joined(upper, name, kUpper)},
                                       {"workdir", joined(work, name, kWork)},
                                       // In a user namespace trusted.* cannot be written (user_namespaces(7)).
                                       {"userxattr", nullptr}}};
  if (::fchdir(scratch_) != 0) return -1;
  return new_mount("overlay", options.data(), options.size() - (base_.privileged ? 1 : 0),
                   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

bool Files::attach_private(Step& step) {
  int at = -1;
  if (!open_target(step, false, at)) return false;
  std::array<char, kScratchNameSize> buffer{};
  const char* name = numbered(buffer, "", number_of(*child_.program, step));
  bool good = check(::mkdirat(scratch_, name, 0700) == 0, "make a folder", name);
  const int folder = good ? ::openat(scratch_, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
  good = good && check(folder >= 0, "open", name) && make_layers(folder, at, step);
  const int lower = good ? ::openat(folder, kLower, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
  good = good && check(lower >= 0, "open", kLower);
  int tree = -1;
  if (good) {
    // Without what is mounted below: an overlay would not show it. Attached, since before Linux 6.15 a layer has to be.
    tree = ::open_tree(at, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    good = check(tree >= 0 && ::move_mount(tree, "", lower, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0,
                 "clone the mount of", step.target);
  }
  const int overlay = good ? new_overlay(name) : -1;
  if (good && overlay < 0) step.refused = errno;
  good = good && (overlay < 0 ||
                  check(::move_mount(overlay, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0,
                        "attach", step.target));
  for (const int each : {at, folder, lower, tree, overlay}) {
    if (each >= 0) ::close(each);
  }
  return good && (step.refused == 0 || attach_read_only(step));
}

bool Files::attach_proc(const Step& step) {
  if (!attach(new_proc_, step)) return false;
  proc_ = ::open_tree(root_, step.target, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (proc_ < 0) return fail("clone the mount of", step.target, errno);
  return check(::mkdirat(scratch_, kProcParked, 0755) == 0, "make a folder", kProcParked) && park(proc_, kProcParked);
}

bool Files::carry_out(Step& step, int id_map) {
  switch (step.op) {
    case Op::kFolder:
      return make_folder(root_, step);
    case Op::kLink:
      return check(::symlinkat(step.source, root_, step.target) == 0, "make a link", step.target);
    case Op::kFile:
      // Most are only something to mount on: one call instead of three. The steps made the way, so there is no link on
      // it.
      if (step.size == 0 && step.own_way && !step.owned) {
        return check(::mknodat(root_, step.target, S_IFREG | step.mode, 0) == 0, "make a file", step.target);
      }
      return make_file(root_, step.target, {step.source, step.size}, step.mode, step.owned);
    case Op::kBind:
    case Op::kDevice: {
      if (step.tree < 0) return true;  // optional and missing
      const bool good = (!step.idmap || map_ids_of(step, id_map)) && attach(step.tree, step);
      ::close(step.tree);
      step.tree = -1;
      return good;
    }
    case Op::kScratch:
      return attach_scratch(step);
    case Op::kFileOver:
      return attach_file(step);
    case Op::kProc:
      return attach_proc(step);
    case Op::kPts:
      return attach(new_pts_, step);
    case Op::kMask:
      return attach_mask(step);
    case Op::kReadOnly:
      return attach_read_only(step);
    case Op::kPrivate:
      return attach_private(step);
  }
  return fail("set up", step.target, EINVAL);
}

bool Files::change_root() {
  if (!check(::fchdir(root_) == 0, "enter", "the guest's root")) return false;
  // With both arguments the same the old root ends up on top of the new one (pivot_root(2), NOTES).
  if (!check(::syscall(SYS_pivot_root, ".", ".") == 0, "pivot_root", "")) return false;
  if (child_.program->protections.detach_old_root) {
    if (!check(::umount2(".", MNT_DETACH) == 0, "detach", "the host's root")) return false;
  }
  if (!check(::chdir("/") == 0, "enter", "/")) return false;
  if (child_.program->protections.hostname &&
      !check(::sethostname(child_.program->hostname.c_str(), child_.program->hostname.size()) == 0, "name the guest",
             "")) {
    return false;
  }
  if (!child_.program->protections.root_read_only) return true;
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  return check(::mount_setattr(root_, "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0, "make read-only", "/");
}

}  // namespace belljar::tiers::jail
