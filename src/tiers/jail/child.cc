#include "tiers/jail/child.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "guest/protocol.h"
#include "linux/descriptor_passing.h"
#include "linux/loopback.h"

namespace belljar::tiers::jail {
namespace {

// In the scratch tmpfs, beside the numbered folders and files that are attached elsewhere.
constexpr const char* kEmptyFile = "empty-file";
constexpr const char* kEmptyFolder = "empty-folder";
constexpr const char* kProcParked = "proc";
constexpr const char* kGuestParked = "guest";

// Decimal digits of `value` behind `prefix`, without stdio.
template <size_t N>
const char* numbered(std::array<char, N>& buffer, const char* prefix, uint64_t value) {
  size_t at = std::strlen(prefix);
  std::memcpy(buffer.data(), prefix, at);
  std::array<char, 24> digits{};
  size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count > 0) buffer[at++] = digits[--count];
  buffer[at] = '\0';
  return buffer.data();
}

class Run {
 public:
  explicit Run(Child& child) : child_(child), base_(child.foundation) {}
  // Each returns true to go on; false with the failure noted.
  bool all();

 private:
  bool fail(const char* operation, const char* subject, int code) {
    child_.failed_operation = operation;
    child_.failed_subject = subject;
    child_.failed_code = code;
    return false;
  }
  bool check(bool good, const char* operation, const char* subject = "") {
    return good || fail(operation, subject, errno);
  }
  [[nodiscard]] int open_in_root(const char* path, uint64_t flags) const;
  [[nodiscard]] int open_host(const char* path) const;

  bool arm_death_signal();
  bool map_ids();
  bool open_trees();
  bool open_tree_of(Step& step);
  bool open_guest();
  bool make_mounts();
  bool attach_root();
  bool found();
  bool take_order();
  bool build();
  bool make_scratch();
  bool carry_out(Step& step);
  bool make_folder(int folder, const Step& step);
  bool make_file(int folder, const char* path, const char* text, mode_t mode, bool owned);
  bool attach(int tree, const Step& step);
  bool park(int tree, const char* name);
  bool make_template(const char* name);
  bool attach_scratch(const Step& step);
  bool attach_proc(const Step& step);
  bool attach_mask(const Step& step);
  bool attach_mask_by_name(const Step& step);
  bool attach_read_only(const Step& step);
  bool attach_file(const Step& step);
  bool clone_over(int folder, const char* path, int target, const char* name, uint64_t attributes);
  bool open_target(const Step& step, bool may_be_missing, int& at);
  bool make_network();
  bool change_root();
  bool drop_privilege();
  bool set_ids();
  bool place_descriptors();
  bool execute();

  Child& child_;
  const Foundation& base_;
  Program* program_ = nullptr;              // from the order on
  std::array<int, Order::kCount> given_{};  // descriptors that came with it
  int root_ = -1;                           // the new root
  int new_proc_ = -1;
  int new_pts_ = -1;
  int scratch_ = -1;  // its scratch tmpfs
  int proc_ = -1;     // a clone of its proc that nothing is mounted on
  int guest_ = -1;    // belljar-guest, on a read-only mount that is attached nowhere
  uint64_t next_name_ = 0;
};

// A link in any component would be of somebody's making: the plan holds real paths.
int open_how_fd(int folder, const char* path, uint64_t flags, uint64_t resolve) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, folder, path, &how, sizeof how));
}

int Run::open_in_root(const char* path, uint64_t flags) const {
  return open_how_fd(root_, path, flags, RESOLVE_BENEATH);
}

int Run::open_host(const char* path) const {
  return open_how_fd(AT_FDCWD, path, O_PATH, 0);
}

bool Run::arm_death_signal() {
  if (base_.death_signal && ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
    return fail("set the parent-death signal", "", errno);
  }
  // The launcher may have died before the signal was armed: then its end of the socket is closed. getppid() would not
  // tell, it is 0 for every parent outside the pid namespace.
  pollfd control{child_.control, POLLIN, 0};
  if (::poll(&control, 1, 0) > 0 && (control.revents & (POLLHUP | POLLERR)) != 0) {
    return fail("start the guest", "", ESRCH);
  }
  return true;
}

bool write_text(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool good = ::write(fd, text, std::strlen(text)) == static_cast<ssize_t>(std::strlen(text));
  const int code = errno;
  ::close(fd);
  errno = code;
  return good;
}

bool Run::map_ids() {
  if (base_.privileged) return true;
  // Needed before gid_map by a process without CAP_SETGID in the parent namespace (user_namespaces(7)).
  return check(write_text("/proc/self/setgroups", "deny"), "forbid setgroups", "") &&
         check(write_text("/proc/self/uid_map", child_.uid_map), "map the user id", child_.uid_map) &&
         check(write_text("/proc/self/gid_map", child_.gid_map), "map the group id", child_.gid_map);
}

bool Run::open_tree_of(Step& step) {
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
  attributes.attr_set = program_->protections.bind_attributes;
  if (step.op == Op::kDevice) {
    // Read-only keeps the host's node from chmod and utimes; writing to the device stays possible.
    attributes.attr_set = (attributes.attr_set & ~uint64_t{MOUNT_ATTR_NODEV}) | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;
  } else if (!step.writable) {
    attributes.attr_set |= MOUNT_ATTR_RDONLY;
  }
  if (step.idmap) {
    attributes.attr_set |= MOUNT_ATTR_IDMAP;
    attributes.userns_fd = static_cast<uint64_t>(given_[Order::kIdMap]);
  }
  return check(::mount_setattr(step.tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) == 0,
               step.idmap ? "map the ids of" : "restrict the mount of", step.source);
}

// Before anything is attached, so that no path of the host is looked up through what the guest gets.
bool Run::open_trees() {
  for (Step& step : program_->steps) {
    if ((step.op == Op::kBind || step.op == Op::kDevice) && !open_tree_of(step)) return false;
  }
  return open_guest();
}

bool Run::open_guest() {
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

// Mounts that no plan changes, attached nowhere yet.
bool Run::make_mounts() {
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
bool Run::attach_root() {
  return check(::move_mount(root_, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) == 0, "attach", "/");
}

// A detached tree is unmounted when its descriptor goes, and that waits for every processor of the machine. Attached to
// scratch it goes with the host's root, in the same wait; its descriptor works all the same.
bool Run::park(int tree, const char* name) {
  return check(::move_mount(tree, "", scratch_, name, MOVE_MOUNT_F_EMPTY_PATH) == 0, "attach", name);
}

// Over the host's /proc, which nothing looks at any more: attached, since before Linux 6.15 a detached tree cannot be
// cloned from, and gone together with the host's root.
bool Run::make_scratch() {
  std::array<char, 32> size{};
  std::array<char, 32> files{};
  // Open to all, so that only Landlock can keep init out of it, which the probe tries. The agent never sees this
  // folder.
  const std::array<Option, 3> options{{{"mode", "0777"},
                                       {"size", numbered(size, "", program_->scratch_bytes)},
                                       {"nr_inodes", numbered(files, "", program_->scratch_files)}}};
  scratch_ = new_mount("tmpfs", options.data(), options.size(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (scratch_ < 0) return fail("mount the guest's scratch", "tmpfs", errno);
  return check(::move_mount(scratch_, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) == 0, "attach", "/proc") &&
         make_file(scratch_, kEmptyFile, "", 0444, false) && make_file(scratch_, kGuestParked, "", 0444, false) &&
         park(guest_, kGuestParked) &&
         check(::mkdirat(scratch_, kEmptyFolder, 0555) == 0, "make a folder", kEmptyFolder) &&
         make_template(kEmptyFile) && make_template(kEmptyFolder);
}

// Mounts it over itself, read-only: each clone of it then comes read-only.
bool Run::make_template(const char* name) {
  const int at = ::openat(scratch_, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (at < 0) return fail("open", name, errno);
  const bool good = clone_over(scratch_, name, at, name, MOUNT_ATTR_RDONLY);
  ::close(at);
  return good;
}

bool Run::make_folder(int folder, const Step& step) {
  if (!check(::mkdirat(folder, step.target, step.mode) == 0 || errno == EEXIST, "make a folder", step.target)) {
    return false;
  }
  if (!step.owned || !base_.privileged) return true;
  return check(::fchownat(folder, step.target, program_->identity.host_uid, program_->identity.host_gid,
                          AT_SYMLINK_NOFOLLOW) == 0,
               "give to the guest", step.target);
}

bool Run::make_file(int folder, const char* path, const char* text, mode_t mode, bool owned) {
  open_how how{};
  how.flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const int file = static_cast<int>(::syscall(SYS_openat2, folder, path, &how, sizeof how));
  if (file < 0) return fail("make a file", path, errno);
  const size_t size = std::strlen(text);
  bool good = ::write(file, text, size) == static_cast<ssize_t>(size);
  if (owned && base_.privileged) {
    good = good && ::fchown(file, program_->identity.host_uid, program_->identity.host_gid) == 0;
  }
  const int code = errno;
  ::close(file);
  return good || fail("write", path, code);
}

bool Run::attach(int tree, const Step& step) {
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
bool Run::clone_over(int folder, const char* path, int target, const char* name, uint64_t attributes) {
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

bool Run::attach_scratch(const Step& step) {
  std::array<char, 24> name{};
  Step made = step;
  made.target = numbered(name, "", ++next_name_);
  if (!make_folder(scratch_, made)) return false;
  const int tree = ::open_tree(scratch_, made.target, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
  if (tree < 0) return fail("clone the mount of", step.target, errno);
  const bool good = attach(tree, step);
  ::close(tree);
  return good;
}

// Opens what lies at the step's target; -1 without a failure when nothing does and nothing has to.
bool Run::open_target(const Step& step, bool may_be_missing, int& at) {
  at = open_in_root(step.target, O_PATH);
  return at >= 0 || (errno == ENOENT && may_be_missing) || fail("open in the guest", step.target, errno);
}

bool Run::attach_file(const Step& step) {
  int at = -1;
  if (!open_target(step, step.optional, at)) return false;
  if (at < 0) return true;
  std::array<char, 24> name{};
  const char* file = numbered(name, "", ++next_name_);
  const bool good = make_file(scratch_, file, step.source, 0644, false) &&
                    clone_over(scratch_, file, at, step.target, MOUNT_ATTR_RDONLY);
  ::close(at);
  return good;
}

bool Run::attach_mask(const Step& step) {
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

bool Run::attach_mask_by_name(const Step& step) {
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

bool Run::attach_read_only(const Step& step) {
  int at = -1;
  if (!open_target(step, step.optional, at)) return false;
  if (at < 0) return true;
  const bool good = clone_over(at, "", at, step.target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  ::close(at);
  return good;
}

bool Run::attach_proc(const Step& step) {
  if (!attach(new_proc_, step)) return false;
  proc_ = ::open_tree(root_, step.target, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (proc_ < 0) return fail("clone the mount of", step.target, errno);
  return check(::mkdirat(scratch_, kProcParked, 0755) == 0, "make a folder", kProcParked) && park(proc_, kProcParked);
}

bool Run::carry_out(Step& step) {
  switch (step.op) {
    case Op::kFolder:
      return make_folder(root_, step);
    case Op::kLink:
      return check(::symlinkat(step.source, root_, step.target) == 0, "make a link", step.target);
    case Op::kFile:
      // Most are only something to mount on: one call instead of three. The steps made the way, so there is no link on
      // it.
      if (*step.source == '\0' && step.own_way && !step.owned) {
        return check(::mknodat(root_, step.target, S_IFREG | step.mode, 0) == 0, "make a file", step.target);
      }
      return make_file(root_, step.target, step.source, step.mode, step.owned);
    case Op::kBind:
    case Op::kDevice: {
      if (step.tree < 0) return true;  // optional and missing
      const bool good = attach(step.tree, step);
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
  }
  return fail("set up", step.target, EINVAL);
}

bool Run::make_network() {
  if (base_.proxy_port == 0) return true;
  if (base_.loopback) {
    const int error = linux::bring_up_loopback();
    if (error != 0) return fail("bring up", "lo", error);
  }
  if (!base_.listener) return true;
  int listener = -1;
  int error = linux::listen_on_loopback(base_.proxy_port, listener);
  if (error != 0) return fail("listen on the guest's loopback", "", error);
  const uint32_t tag = guest::kMagic;
  error = linux::send_with_descriptor(child_.control, &tag, sizeof tag, listener);
  ::close(listener);
  return error == 0 || fail("hand out the listener", "", error);
}

bool Run::change_root() {
  if (!check(::fchdir(root_) == 0, "enter", "the guest's root")) return false;
  // With both arguments the same the old root ends up on top of the new one (pivot_root(2), NOTES).
  if (!check(::syscall(SYS_pivot_root, ".", ".") == 0, "pivot_root", "")) return false;
  if (program_->protections.detach_old_root) {
    if (!check(::umount2(".", MNT_DETACH) == 0, "detach", "the host's root")) return false;
  }
  if (!check(::chdir("/") == 0, "enter", "/")) return false;
  if (program_->protections.hostname &&
      !check(::sethostname(program_->hostname.c_str(), program_->hostname.size()) == 0, "name the guest", "")) {
    return false;
  }
  if (!program_->protections.root_read_only) return true;
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  return check(::mount_setattr(root_, "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0, "make read-only", "/");
}

bool Run::set_ids() {
  if (!base_.privileged) return true;
  const plan::Identity& who = program_->identity;
  // Bare calls: glibc's wrappers would signal the launcher's other threads to follow (nptl(7), "C library/kernel
  // differences"), and it is the launcher's thread list that this process sees.
  if (program_->protections.drop_groups && ::syscall(SYS_setgroups, 0, nullptr) != 0) {
    return fail("drop the groups", "", errno);
  }
  if ((base_.namespaces & CLONE_NEWUSER) != 0 &&
      !check(::setns(given_[Order::kUserNamespace], CLONE_NEWUSER) == 0, "enter the guest's user namespace", "")) {
    return false;
  }
  return check(::syscall(SYS_setresgid, who.guest_gid, who.guest_gid, who.guest_gid) == 0, "become the guest's group",
               "") &&
         check(::syscall(SYS_setresuid, who.guest_uid, who.guest_uid, who.guest_uid) == 0, "become the guest's user",
               "") &&
         // setresuid() has cleared it (prctl(2), PR_SET_PDEATHSIG).
         arm_death_signal();
}

bool Run::drop_privilege() {
  if (!set_ids()) return false;
  if (program_->protections.limit_namespaces) {
    // Through a clone of proc, since /proc/sys is read-only for the guest. The limit is the user namespace's own, and
    // holds for its descendants too (namespaces(7), /proc/sys/user).
    const int limit = ::openat(proc_, "sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
    if (limit < 0) return fail("open", "max_user_namespaces", errno);
    const bool good = ::write(limit, "0", 1) == 1;
    const int code = errno;
    ::close(limit);
    if (!good) return fail("forbid user namespaces", "max_user_namespaces", code);
  }
  if (program_->protections.drop_bounding_set) {
    // The other four sets empty themselves: the user is not root, so execve(2) gives no capability.
    // EINVAL is the end of what this kernel knows.
    unsigned long capability = 0;
    while (::prctl(PR_CAPBSET_DROP, capability) == 0) ++capability;
    if (errno != EINVAL || capability == 0) return fail("drop the bounding set", "", errno);
  }
  return true;
}

bool Run::place_descriptors() {
  // First above the numbers that init expects, so that none is overwritten before it was moved.
  const std::array<int, 6> wanted{given_[Order::kStdin], given_[Order::kStdout], given_[Order::kStderr],
                                  child_.control,        given_[Order::kConfig], scratch_};
  std::array<int, 6> moved{};
  for (size_t i = 0; i < wanted.size(); ++i) {
    moved[i] = ::fcntl(wanted[i], F_DUPFD_CLOEXEC, 64);
    if (moved[i] < 0) return fail("move a descriptor", "", errno);
  }
  guest_ = ::fcntl(guest_, F_DUPFD_CLOEXEC, 64);
  if (guest_ < 0) return fail("move a descriptor", "", errno);
  for (size_t i = 0; i < moved.size(); ++i) {
    if (::dup2(moved[i], static_cast<int>(i)) < 0) return fail("place a descriptor", "", errno);
  }
  return true;
}

bool Run::execute() {
  std::array<char, 16> name{"belljar-guest"};
  std::array<char*, 2> arguments{name.data(), nullptr};
  std::array<char*, 1> environment{nullptr};
  ::syscall(SYS_execveat, guest_, "", arguments.data(), environment.data(), AT_EMPTY_PATH);
  return fail("execute", child_.guest_path, errno);
}

// All that needs no plan. It runs while the launcher makes one.
bool Run::found() {
  // Copies of everything the launcher had open when it cloned, among them its end of the control socket and whatever
  // its other threads were at. One that is kept would hide the launcher's death from whoever waits for its end.
  const auto own = static_cast<unsigned>(child_.control);
  if (base_.close_descriptors &&
      !check((own <= 3 || ::close_range(3, own - 1, 0) == 0) && ::close_range(own + 1, UINT_MAX, 0) == 0,
             "close what the launcher had open")) {
    return false;
  }
  ::umask(0);
  // Out of the caller's session: its terminal is not this process's to reach.
  if (!check(::setsid() >= 0, "start a session")) return false;
  if (!arm_death_signal() || !map_ids()) return false;
  // Nothing mounted from here on may reach the host's other mount namespaces (mount_namespaces(7)).
  if (!check(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "make private", "/")) return false;
  return make_mounts() && make_network();
}

bool Run::take_order() {
  Order order;
  const int error = linux::receive_with_descriptors(child_.control, &order, sizeof order, given_.data(), given_.size());
  if (error != 0 || order.magic != guest::kMagic) return fail("take the order", "", error != 0 ? error : EPROTO);
  program_ = child_.program;
  return true;
}

bool Run::build() {
  if (!open_trees() || !make_scratch() || !attach_root()) return false;
  for (Step& step : program_->steps) {
    if (!carry_out(step)) return false;
  }
  return change_root() && drop_privilege() && place_descriptors() && execute();
}

bool Run::all() {
  return found() && take_order() && build();
}

}  // namespace

int run_child(void* child) {
  auto* const self = static_cast<Child*>(child);
  Run(*self).all();
  return 125;
}

}  // namespace belljar::tiers::jail
