#include "linux/host_trials.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/fd.h"
#include "base/reap.h"
#include "linux/local_route.h"
#include "linux/loopback.h"
#include "linux/seal.h"
#include "linux/seccomp_filter.h"
#include "linux/tcp_redirect.h"

namespace belljar::linux {
namespace {

// What a child reports: fixed size, so that one read of the pipe is all of it.
struct Report {
  int error = ECHILD;
  std::array<char, 60> step{};
};

// Set by the child before each step; string literals only.
struct Steps {
  const char* now = "start";

  // Notes the step; errno of a failed call, else 0.
  int done(const char* step, long result) {
    now = step;
    return result < 0 ? errno : 0;
  }
};

using Body = int (*)(Steps&, const void*);

Trial run(Body body, const void* argument = nullptr) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {errno, "pipe"};
  const base::Fd reader(ends[0]);
  base::Fd writer(ends[1]);
  const pid_t child = fork();
  if (child < 0) return {errno, "fork"};
  if (child == 0) {
    Steps steps;
    Report report;
    report.error = body(steps, argument);
    std::snprintf(report.step.data(), report.step.size(), "%s", steps.now);
    _exit(write(writer.get(), &report, sizeof(report)) == sizeof(report) ? 0 : 1);
  }
  writer.reset();
  Report report;
  const ssize_t got = read(reader.get(), &report, sizeof(report));
  (void)base::reap(child);
  if (got != static_cast<ssize_t>(sizeof(report))) return {ECHILD, "trial process"};
  report.step.back() = '\0';
  return report.error == 0 ? Trial{} : Trial{report.error, report.step.data()};
}

int write_text(Steps& steps, const char* path, const char* text) {
  const base::Fd fd(open(path, O_WRONLY | O_CLOEXEC));
  const auto size = static_cast<ssize_t>(strlen(text));
  const ssize_t written = fd ? write(fd.get(), text, strlen(text)) : -1;
  if (written == size) return 0;
  steps.now = path;
  return written < 0 ? errno : EIO;
}

// Enters a user namespace whose one mapped id is the own one, as an ordinary user's launch does.
int enter_user_namespace(Steps& steps) {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  if (const int e = steps.done("unshare CLONE_NEWUSER", unshare(CLONE_NEWUSER))) return e;
  std::array<char, 32> map{};
  if (const int e = write_text(steps, "/proc/self/setgroups", "deny")) return e;
  std::snprintf(map.data(), map.size(), "%u %u 1", uid, uid);
  if (const int e = write_text(steps, "/proc/self/uid_map", map.data())) return e;
  std::snprintf(map.data(), map.size(), "%u %u 1", gid, gid);
  return write_text(steps, "/proc/self/gid_map", map.data());
}

// A mount namespace of the own, from which nothing spreads.
int enter_mount_namespace(Steps& steps, bool as_root) {
  if (!as_root) {
    if (const int e = enter_user_namespace(steps)) return e;
  }
  if (const int e = steps.done("unshare CLONE_NEWNS", unshare(CLONE_NEWNS))) return e;
  return steps.done("mount MS_PRIVATE on /", mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr));
}

// Attaches a new filesystem at /tmp of the own mount namespace, by the calls a launch uses (Linux 5.2).
int attach_new(Steps& steps, const char* type) {
  const base::Fd context(static_cast<int>(syscall(SYS_fsopen, type, FSOPEN_CLOEXEC)));
  if (const int e = steps.done("fsopen", context.get())) return e;
  if (const int e = steps.done("fsconfig FSCONFIG_CMD_CREATE",
                               syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0))) {
    return e;
  }
  const base::Fd made(static_cast<int>(syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID)));
  if (const int e = steps.done("fsmount", made.get())) return e;
  return steps.done("move_mount", syscall(SYS_move_mount, made.get(), "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH));
}

int user_namespace_body(Steps& steps, const void*) {
  return enter_user_namespace(steps);
}

int namespaces_body(Steps& steps, const void* as_root) {
  if (!*static_cast<const bool*>(as_root)) {
    if (const int e = enter_user_namespace(steps)) return e;
  }
  if (const int e = steps.done("unshare CLONE_NEWNS", unshare(CLONE_NEWNS))) return e;
  if (const int e = steps.done("unshare CLONE_NEWPID", unshare(CLONE_NEWPID))) return e;
  if (const int e = steps.done("unshare CLONE_NEWNET", unshare(CLONE_NEWNET))) return e;
  if (const int e = steps.done("unshare CLONE_NEWIPC", unshare(CLONE_NEWIPC))) return e;
  if (const int e = steps.done("unshare CLONE_NEWUTS", unshare(CLONE_NEWUTS))) return e;
  return steps.done("unshare CLONE_NEWCGROUP", unshare(CLONE_NEWCGROUP));
}

int mounts_body(Steps& steps, const void* as_root) {
  if (const int e = enter_mount_namespace(steps, *static_cast<const bool*>(as_root))) return e;
  if (const int e = attach_new(steps, "tmpfs")) return e;
  // What carries nosuid, nodev and read-only down a tree (Linux 5.12).
  const base::Fd tree(static_cast<int>(syscall(SYS_open_tree, AT_FDCWD, "/tmp", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (const int e = steps.done("open_tree", tree.get())) return e;
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV;
  return steps.done("mount_setattr", syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE,
                                             &attributes, sizeof(attributes)));
}

// The pid namespace holds for children only, so proc is mounted by one.
int proc_body(Steps& steps, const void* as_root) {
  if (const int e = enter_mount_namespace(steps, *static_cast<const bool*>(as_root))) return e;
  if (const int e = steps.done("unshare CLONE_NEWPID", unshare(CLONE_NEWPID))) return e;
  const pid_t child = fork();
  if (child == 0) {
    Steps inner;
    _exit(attach_new(inner, "proc"));
  }
  if (const int e = steps.done("fork in the pid namespace", child)) return e;
  const int status = base::reap(child);
  steps.now = "mount proc";
  return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

int overlay_body(Steps& steps, const void* as_root) {
  if (const int e = enter_mount_namespace(steps, *static_cast<const bool*>(as_root))) return e;
  if (const int e = attach_new(steps, "tmpfs")) return e;
  for (const char* folder : {"/tmp/lower", "/tmp/upper", "/tmp/work", "/tmp/merged"}) {
    if (const int e = steps.done("mkdir on a tmpfs", mkdir(folder, 0700))) return e;
  }
  return steps.done("mount overlay", mount("overlay", "/tmp/merged", "overlay", 0,
                                           "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work"));
}

int redirect_body(Steps& steps, const void* as_root) {
  if (!*static_cast<const bool*>(as_root)) {
    if (const int e = enter_user_namespace(steps)) return e;
  }
  if (const int e = steps.done("unshare CLONE_NEWNET", unshare(CLONE_NEWNET))) return e;
  steps.now = "bring up lo";
  if (const int e = bring_up_loopback()) return e;
  bool v6 = false;
  steps.now = "local route";
  if (const int e = add_synthetic_routes(v6)) return e;
  steps.now = "nf_tables redirect";
  constexpr uint16_t kAnyPort = 61081;
  return redirect_synthetic_tcp(kAnyPort);
}

// A child that waits in a new user namespace until this object goes.
class Holder {
 public:
  Holder() = default;
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    leave_.reset();
    (void)base::reap(pid_);
  }

  // 0 or an errno.
  int start() {
    std::array<int, 2> ready{};
    std::array<int, 2> leave{};
    if (pipe2(ready.data(), O_CLOEXEC) != 0) return errno;
    const base::Fd ready_reader(ready[0]);
    base::Fd ready_writer(ready[1]);
    if (pipe2(leave.data(), O_CLOEXEC) != 0) return errno;
    const base::Fd leave_reader(leave[0]);
    leave_.reset(leave[1]);
    pid_ = fork();
    if (pid_ < 0) return errno;
    if (pid_ == 0) {
      close(leave_.get());
      const int error = unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
      char end = 0;
      const bool told = write(ready_writer.get(), &error, sizeof(error)) == sizeof(error);
      _exit(told && read(leave_reader.get(), &end, 1) == 0 ? 0 : 1);
    }
    ready_writer.reset();
    int error = 0;
    return read(ready_reader.get(), &error, sizeof(error)) == sizeof(error) ? error : ECHILD;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  base::Fd leave_;
};

int idmap_body(Steps& steps, const void* folder) {
  Holder holder;
  steps.now = "user namespace for the map";
  if (const int e = holder.start()) return e;
  std::array<char, 64> path{};
  for (const char* map : {"uid_map", "gid_map"}) {
    std::snprintf(path.data(), path.size(), "/proc/%d/%s", holder.pid(), map);
    if (const int e = write_text(steps, path.data(), "0 65534 1")) {
      steps.now = "write the id map";
      return e;
    }
  }
  std::snprintf(path.data(), path.size(), "/proc/%d/ns/user", holder.pid());
  const base::Fd userns(open(path.data(), O_RDONLY | O_CLOEXEC));
  if (const int e = steps.done("open the user namespace", userns.get())) return e;
  const base::Fd tree(static_cast<int>(
      syscall(SYS_open_tree, AT_FDCWD, static_cast<const char*>(folder), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (const int e = steps.done("open_tree", tree.get())) return e;
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<uint64_t>(userns.get());
  return steps.done("mount_setattr MOUNT_ATTR_IDMAP",
                    syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof(attributes)));
}

int seccomp_body(Steps& steps, const void*) {
  steps.now = "prctl PR_SET_NO_NEW_PRIVS";
  if (const int e = set_no_new_privs()) return e;
  steps.now = "seccomp SECCOMP_SET_MODE_FILTER";
  return install_filter(agent_filter());
}

}  // namespace

Trial try_user_namespace() {
  return run(user_namespace_body);
}
Trial try_namespaces(bool as_root) {
  return run(namespaces_body, &as_root);
}
Trial try_mounts(bool as_root) {
  return run(mounts_body, &as_root);
}
Trial try_proc(bool as_root) {
  return run(proc_body, &as_root);
}
Trial try_redirect(bool as_root) {
  return run(redirect_body, &as_root);
}

Trial try_overlay(bool as_root) {
  return run(overlay_body, &as_root);
}
Trial try_idmap(const std::string& folder) {
  return run(idmap_body, folder.c_str());
}
Trial try_seccomp() {
  return run(seccomp_body);
}
}  // namespace belljar::linux
