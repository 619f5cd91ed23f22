#include "tiers/bwrap/child.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>

namespace belljar::tiers::bwrap {
namespace {

class Run {
 public:
  Run(const Child& child, pid_t parent) : child_(child), parent_(parent) {}
  [[nodiscard]] const Failure& failure() const { return failure_; }

  bool all();

 private:
  // Each is true to go on.
  bool prepare();
  bool arm_death_signal();
  bool gather();
  bool take_ids();
  bool place_descriptors();
  bool execute();
  bool check(bool good, const char* operation, const char* subject = "") {
    if (!good) failure_ = {operation, subject, errno};
    return good;
  }
  bool open_tree_of(Gathered& each);
  bool attach(const Gathered& each, int stage);

  const Child& child_;
  pid_t parent_;
  Failure failure_;
};

bool Run::prepare() {
  // A group of its own, by which the watcher ends it.
  if (!check(::setsid() >= 0, "start a session") || !arm_death_signal()) return false;
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t nothing;
  ::sigemptyset(&nothing);
  ::sigprocmask(SIG_SETMASK, &nothing, nullptr);
  return true;
}

// Cleared by a change of ids (prctl(2), PR_SET_PDEATHSIG); bubblewrap sets it for itself and its child again.
bool Run::arm_death_signal() {
  if (!check(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "set the parent-death signal")) return false;
  if (::getppid() == parent_) return true;
  errno = ESRCH;
  return check(false, "start bubblewrap");
}

bool Run::open_tree_of(Gathered& each) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const int source = static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, each.source, &how, sizeof how));
  if (source < 0) return (errno == ENOENT && each.optional) || check(false, "open", each.source);
  each.tree = ::open_tree(source, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (!check(each.tree >= 0, "clone the mount of", each.source)) return false;
  ::close(source);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (!each.writable) attributes.attr_set |= MOUNT_ATTR_RDONLY;
  if (each.idmap) {
    attributes.attr_set |= MOUNT_ATTR_IDMAP;
    attributes.userns_fd = static_cast<uint64_t>(child_.id_map);
  }
  return check(::mount_setattr(each.tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) == 0,
               each.idmap ? "map the ids of" : "restrict the mount of", each.source);
}

bool Run::attach(const Gathered& each, int stage) {
  struct stat found{};
  if (!check(::fstat(each.tree, &found) == 0, "look at", each.source)) return false;
  const bool made = S_ISDIR(found.st_mode) ? ::mkdirat(stage, each.name, 0700) == 0
                                           : ::mknodat(stage, each.name, S_IFREG | 0600, 0) == 0;
  return check(made, "make a mount point for", each.source) &&
         check(::move_mount(each.tree, "", stage, each.name, MOVE_MOUNT_F_EMPTY_PATH) == 0, "attach", each.source);
}

// All sources are opened before the stage hides anything. Nobody but bubblewrap ever sees the stage.
bool Run::gather() {
  if (!child_.privileged) return true;
  if (!check(::unshare(CLONE_NEWNS) == 0, "make a mount namespace")) return false;
  if (!check(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "make private", "/")) return false;
  for (Gathered& each : child_.gathered) {
    if (!open_tree_of(each)) return false;
  }
  if (!check(::mount("stage", child_.stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=4m,nr_inodes=8192") == 0,
             "mount a stage on", child_.stage)) {
    return false;
  }
  const int stage = ::open(child_.stage, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (!check(stage >= 0, "open", child_.stage)) return false;
  for (const Gathered& each : child_.gathered) {
    if (each.tree >= 0 && !attach(each, stage)) return false;
  }
  return true;
}

bool Run::take_ids() {
  if (!child_.privileged) return true;
  // The namespaces that bubblewrap makes belong to one that is root's, so that the launcher may signal whoever is in
  // them without a capability of its own (capabilities(7); user_namespaces(7), "Capabilities").
  return check(::syscall(SYS_setgroups, 0, nullptr) == 0, "drop the groups") &&
         check(::setns(child_.user_namespace, CLONE_NEWUSER) == 0, "enter the guest's user namespace") &&
         check(::syscall(SYS_setresgid, child_.gid, child_.gid, child_.gid) == 0, "become the guest's group") &&
         check(::syscall(SYS_setresuid, child_.uid, child_.uid, child_.uid) == 0, "become the guest's user") &&
         arm_death_signal();
}

bool Run::place_descriptors() {
  const auto count = static_cast<int>(child_.descriptors.size());
  for (int to = 0; to < count; ++to) {
    if (!check(::dup2(child_.descriptors[static_cast<size_t>(to)], to) == to, "place a descriptor")) return false;
  }
  return check(::close_range(static_cast<unsigned>(count), UINT_MAX, CLOSE_RANGE_CLOEXEC) == 0,
               "close what the launcher had open");
}

bool Run::execute() {
  std::array<char*, 1> environment{nullptr};
  ::execve(child_.program, child_.words, environment.data());
  return check(false, "execute", child_.program);
}

bool Run::all() {
  return prepare() && gather() && take_ids() && place_descriptors() && execute();
}

}  // namespace

int watch_over_bubblewrap(const Child& child) {
  constexpr int kFailed = 125;
  // Out of the caller's session: what its terminal sends is the launcher's to handle.
  ::setsid();
  ::prctl(PR_SET_NAME, "belljar-watch");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::close(child.life_end);
  ::close(child.go_end);
  char word = 0;
  ssize_t heard = 0;
  while ((heard = ::read(child.go, &word, 1)) < 0 && errno == EINTR) {
  }
  if (heard != 1) return kFailed;
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    Run run(child, self);
    (void)run.all();
    (void)!::write(child.failed, &run.failure(), sizeof(Failure));
    ::_exit(kFailed);
  }
  if (pid < 0) {
    const Failure failure{"start a process", "", errno};
    (void)!::write(child.failed, &failure, sizeof failure);
    return kFailed;
  }
  const auto life = static_cast<unsigned>(child.life);
  ::close_range(0, life - 1, 0);
  ::close_range(life + 1, UINT_MAX, 0);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  std::array<pollfd, 2> wait{{{child.life, POLLIN, 0}, {pidfd, POLLIN, 0}}};
  while (::poll(wait.data(), wait.size(), -1) < 0 && errno == EINTR) {
  }
  // It may not lead its group yet.
  ::kill(pid, SIGKILL);
  while (::poll(&wait[1], 1, -1) < 0 && errno == EINTR) {
  }
  // Its number is its own until it is collected, so this is its group and nobody else's, and nothing comes to it any
  // more. Init leads one of its own, and ends with it or by itself.
  ::kill(-pid, SIGKILL);
  while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  return 0;
}

}  // namespace belljar::tiers::bwrap
