// Kernel features that undo a boundary or are the shortest way to break it.
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <ctime>

#include "breakout/hostile.h"

namespace hostile {
namespace {

// clone(2) with no stack of its own is a fork; a child that comes about leaves at once.
long clone_with(uint64_t flags) {
  const long pid = ::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) ::_exit(0);
  if (pid > 0) ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return pid;
}

long clone3_with(uint64_t flags) {
  clone_args arguments{};
  arguments.flags = flags;
  arguments.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) ::_exit(0);
  if (pid > 0) ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return pid;
}

constexpr std::array<uint64_t, 8> kNamespaces = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,    CLONE_NEWNET,
                                                 CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP, 0x80 /* time */};

Outcome every_namespace(long (*make)(uint64_t flag)) {
  Outcome last = held("");
  for (const uint64_t flag : kNamespaces) {
    last = refused(make(flag));
    if (last.through) return through("namespace flag " + std::to_string(flag));
  }
  return last;
}

Outcome enter_of_init(const char* name) {
  const int fd = ::open((std::string("/proc/1/ns/") + name).c_str(), O_RDONLY | O_CLOEXEC);
  return fd < 0 ? held(strerrorname_np(errno)) : refused(::setns(fd, 0));
}

long call32(long number) {
  long result = number;
  asm volatile("int $0x80" : "+a"(result) : "b"(0), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

const Attempt kAttempts[] = {
    {"unshare", [] { return every_namespace([](uint64_t flag) { return ::syscall(SYS_unshare, flag); }); }},
    // The time namespace's bit is part of the exit signal there (clone(2)).
    {"clone",
     [] {
       for (const uint64_t flag : kNamespaces) {
         if (flag != 0x80 && clone_with(flag) >= 0) return through("namespace flag " + std::to_string(flag));
       }
       return held(strerrorname_np(errno));
     }},
    {"clone-all", [] { return refused(clone_with(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET)); }},
    {"clone-high-bits", [] { return refused(clone_with(CLONE_NEWUSER | (1ULL << 32U))); }},
    {"clone3", [] { return every_namespace(clone3_with); }},
    {"unshare-32-bit", [] { return refused(call32(310)); }},
    {"unshare-by-tool", [] { return shell("unshare -Ur true") == 0 ? through("it worked") : held("it failed"); }},
    {"setns-user", [] { return enter_of_init("user"); }},
    {"setns-mount", [] { return enter_of_init("mnt"); }},
    {"setns-pid", [] { return enter_of_init("pid"); }},
    {"setns-net", [] { return enter_of_init("net"); }},
    {"setns-own", [] { return refused(::setns(::open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC), 0)); }},
    {"setns-by-process",
     [] { return refused(::setns(static_cast<int>(::syscall(SYS_pidfd_open, 1, 0)), CLONE_NEWNS)); }},
    {"mount-tmpfs", [] { return refused(::mount("tmpfs", ".", "tmpfs", 0, nullptr)); }},
    {"mount-proc", [] { return refused(::mount("proc", ".", "proc", 0, nullptr)); }},
    {"mount-bind", [] { return refused(::mount("/", ".", nullptr, MS_BIND | MS_REC, nullptr)); }},
    {"mount-overlay", [] { return refused(::mount("overlay", ".", "overlay", 0, "lowerdir=/usr:/etc")); }},
    {"mount-private", [] { return refused(::mount(nullptr, "/", nullptr, MS_SHARED | MS_REC, nullptr)); }},
    {"unmount-proc", [] { return refused(::umount2("/proc", MNT_DETACH)); }},
    {"unmount-a-mask", [] { return refused(::umount2("/proc/kcore", 0)); }},
    {"unmount-the-root", [] { return refused(::umount2("/", MNT_DETACH)); }},
    {"pivot-root", [] { return refused(::syscall(SYS_pivot_root, ".", ".")); }},
    {"new-mount-context", [] { return refused(::syscall(SYS_fsopen, "tmpfs", 0)); }},
    {"clone-a-tree", [] { return refused(::syscall(SYS_open_tree, AT_FDCWD, "/", 1 | AT_RECURSIVE)); }},
    {"move-a-mount", [] { return refused(::syscall(SYS_move_mount, AT_FDCWD, "/tmp", AT_FDCWD, ".", 0)); }},
    {"pick-a-mount", [] { return refused(::syscall(SYS_fspick, AT_FDCWD, "/tmp", 0)); }},
    {"change-a-mount",
     [] {
       mount_attr attributes{};
       attributes.attr_clr = MOUNT_ATTR_RDONLY;
       return refused(::syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, &attributes, sizeof attributes));
     }},
    {"list-mounts", [] { return refused_with(::syscall(458, nullptr, nullptr, 0, 0), ENOSYS); }},
    {"session-keyring",
     [] { return refused(::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0)); }},
    {"user-keyring", [] { return refused(::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1)); }},
    {"add-a-key", [] { return refused(::syscall(SYS_add_key, "user", "guest", "x", 1, KEY_SPEC_PROCESS_KEYRING)); }},
    {"request-a-key",
     [] { return refused(::syscall(SYS_request_key, "user", "guest", "x", KEY_SPEC_PROCESS_KEYRING)); }},
    {"io-uring",
     [] {
       std::array<char, 256> parameters{};
       return refused(::syscall(SYS_io_uring_setup, 8, parameters.data()));
     }},
    {"bpf",
     [] {
       std::array<uint32_t, 16> attributes{2, 4, 8, 1};
       return refused(::syscall(SYS_bpf, 0, attributes.data(), sizeof attributes));
     }},
    {"perf",
     [] {
       std::array<uint32_t, 32> attributes{1, 128, 0};
       return refused(::syscall(SYS_perf_event_open, attributes.data(), 0, -1, -1, 0));
     }},
    {"userfaultfd", [] { return refused(::syscall(SYS_userfaultfd, 1)); }},
    {"userfaultfd-whole", [] { return refused(::syscall(SYS_userfaultfd, 0)); }},
    {"executable-reads", [] { return refused(::personality(READ_IMPLIES_EXEC)); }},
    {"page-zero", [] { return refused(::personality(MMAP_PAGE_ZERO)); }},
    {"personality-high-bits", [] { return refused(::syscall(SYS_personality, READ_IMPLIES_EXEC | (1UL << 32U))); }},
    {"module", [] { return refused(::syscall(SYS_init_module, "", 0, "")); }},
    {"module-from-file", [] { return refused(::syscall(SYS_finit_module, 0, "", 0)); }},
    {"another-kernel", [] { return refused(::syscall(SYS_kexec_load, 0, 0, nullptr, 0)); }},
    {"reboot", [] { return refused_with(::syscall(SYS_reboot, 0xfee1dead, 0, 0, nullptr), EPERM); }},
    {"kernel-log", [] { return refused(::syscall(SYS_syslog, 10, nullptr, 0)); }},
    {"swap", [] { return refused(::swapoff("/dev/null")); }},
    {"accounting", [] { return refused(::syscall(SYS_acct, nullptr)); }},
    {"hostname", [] { return refused(::sethostname("guest", 5)); }},
    {"clock",
     [] {
       const timespec now{0, 0};
       return refused(::clock_settime(CLOCK_REALTIME, &now));
     }},
    {"clock-of-old",
     [] {
       const timeval now{0, 0};
       return refused(::settimeofday(&now, nullptr));
     }},
    {"port-access", [] { return refused(::syscall(SYS_iopl, 3)); }},
    {"port-range", [] { return refused(::syscall(SYS_ioperm, 0x70, 2, 1)); }},
    {"quota", [] { return refused(::syscall(SYS_quotactl, 0x80000700, "/dev/sda", 0, nullptr)); }},
    {"watch-the-file-system", [] { return refused(::syscall(SYS_fanotify_init, 0, 0)); }},
    {"secret-memory", [] { return refused(::syscall(SYS_memfd_secret, 0)); }},
    {"segments", [] { return refused(::syscall(SYS_modify_ldt, 0, nullptr, 0)); }},
    {"compare-processes", [] { return refused(::syscall(SYS_kcmp, 1, 1, 0, 0, 0)); }},
    {"memory-policy", [] { return refused(::syscall(SYS_migrate_pages, 1, 0, nullptr, nullptr)); }},
    {"hang-up-the-terminal", [] { return refused(::syscall(SYS_vhangup)); }},
    {"unknown-call", [] { return refused_with(::syscall(2000), ENOSYS); }},
    {"x32-call", [] { return refused_with(::syscall(0x40000000L + SYS_getpid), ENOSYS); }},
    {"32-bit-call", [] { return refused_with(call32(20), ENOSYS); }},
    {"drop-the-filter", [] { return refused(::prctl(PR_SET_SECCOMP, 0, nullptr)); }},
    {"drop-no-new-privileges", [] { return refused(::prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)); }},
    {"keep-capabilities",
     [] {
       ::prctl(PR_SET_KEEPCAPS, 1);
       return refused(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0));
     }},
};

}  // namespace

std::span<const Attempt> kernel_attempts() {
  return kAttempts;
}

}  // namespace hostile
