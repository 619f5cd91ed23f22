// What the guest's system-call filter answers, call by call, with the reason. An allowlist: a call that is in no group
// answers ENOSYS, so a kernel newer than this table adds nothing to what an agent can reach.
//
// Start: the default profile of the container engines for a container without capabilities. Narrower, because agents,
// compilers, package managers, debuggers and browsers were seen to run without the rest.
//
// Two errnos for refusals: EPERM where a program expects "you may not", ENOSYS where it has a fallback for old kernels.
#pragma once

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "linux/seccomp_compiler.h"

#ifndef __x86_64__
#error "The rules were reviewed for x86-64 only: other architectures have other calls and other argument orders."
#endif

namespace belljar::linux::rules {

#define BELLJAR_CALL(name) \
  Call {                   \
    #name, SYS_##name      \
  }

// Calls newer than the headers of Debian 12 (Linux 6.1). Numbers from 424 on are the same on every architecture
// (arch/x86/entry/syscalls/syscall_64.tbl); uretprobe is x86-64's own.
inline constexpr uint32_t kUretprobe = 335;
inline constexpr uint32_t kCachestat = 451;
inline constexpr uint32_t kFchmodat2 = 452;
inline constexpr uint32_t kMapShadowStack = 453;
inline constexpr uint32_t kFutexWake = 454;
inline constexpr uint32_t kFutexWait = 455;
inline constexpr uint32_t kFutexRequeue = 456;
inline constexpr uint32_t kStatmount = 457;
inline constexpr uint32_t kListmount = 458;
inline constexpr uint32_t kLsmGetSelfAttr = 459;
inline constexpr uint32_t kLsmSetSelfAttr = 460;
inline constexpr uint32_t kLsmListModules = 461;
inline constexpr uint32_t kMseal = 462;
inline constexpr uint32_t kSetxattrat = 463;
inline constexpr uint32_t kGetxattrat = 464;
inline constexpr uint32_t kListxattrat = 465;
inline constexpr uint32_t kRemovexattrat = 466;
inline constexpr uint32_t kOpenTreeAttr = 467;
inline constexpr uint32_t kFileGetattr = 468;
inline constexpr uint32_t kFileSetattr = 469;
inline constexpr uint32_t kListns = 470;

// clang-format off: one call a line would hide the table's shape.

// ------------------------------------------------------------------------------------------------ plainly allowed

inline constexpr auto kFileCalls = std::to_array<Call>({
    BELLJAR_CALL(read), BELLJAR_CALL(write), BELLJAR_CALL(close), BELLJAR_CALL(stat), BELLJAR_CALL(fstat),
    BELLJAR_CALL(lstat), BELLJAR_CALL(lseek), BELLJAR_CALL(pread64), BELLJAR_CALL(pwrite64), BELLJAR_CALL(readv),
    BELLJAR_CALL(writev), BELLJAR_CALL(access), BELLJAR_CALL(pipe), BELLJAR_CALL(dup), BELLJAR_CALL(dup2),
    BELLJAR_CALL(sendfile), BELLJAR_CALL(flock), BELLJAR_CALL(fsync), BELLJAR_CALL(fdatasync),
    BELLJAR_CALL(truncate), BELLJAR_CALL(ftruncate), BELLJAR_CALL(getdents), BELLJAR_CALL(getcwd), BELLJAR_CALL(chdir),
    BELLJAR_CALL(fchdir), BELLJAR_CALL(rename), BELLJAR_CALL(rmdir), BELLJAR_CALL(link), BELLJAR_CALL(unlink),
    BELLJAR_CALL(symlink), BELLJAR_CALL(readlink), BELLJAR_CALL(chown), BELLJAR_CALL(fchown), BELLJAR_CALL(lchown),
    BELLJAR_CALL(umask), BELLJAR_CALL(utime), BELLJAR_CALL(statfs), BELLJAR_CALL(fstatfs), BELLJAR_CALL(sync),
    BELLJAR_CALL(readahead), BELLJAR_CALL(getxattr), BELLJAR_CALL(lgetxattr), BELLJAR_CALL(fgetxattr), BELLJAR_CALL(listxattr),
    BELLJAR_CALL(llistxattr), BELLJAR_CALL(flistxattr), BELLJAR_CALL(removexattr), BELLJAR_CALL(lremovexattr),
    BELLJAR_CALL(fremovexattr), BELLJAR_CALL(getdents64), BELLJAR_CALL(fadvise64), BELLJAR_CALL(utimes),
    BELLJAR_CALL(inotify_init), BELLJAR_CALL(inotify_add_watch), BELLJAR_CALL(inotify_rm_watch), BELLJAR_CALL(fchownat),
    BELLJAR_CALL(futimesat), BELLJAR_CALL(newfstatat), BELLJAR_CALL(unlinkat), BELLJAR_CALL(renameat),
    BELLJAR_CALL(linkat), BELLJAR_CALL(symlinkat), BELLJAR_CALL(readlinkat), BELLJAR_CALL(faccessat),
    BELLJAR_CALL(splice), BELLJAR_CALL(tee), BELLJAR_CALL(sync_file_range), BELLJAR_CALL(vmsplice),
    BELLJAR_CALL(utimensat), BELLJAR_CALL(fallocate), BELLJAR_CALL(dup3), BELLJAR_CALL(pipe2),
    BELLJAR_CALL(inotify_init1), BELLJAR_CALL(preadv), BELLJAR_CALL(pwritev), BELLJAR_CALL(name_to_handle_at),
    BELLJAR_CALL(syncfs), BELLJAR_CALL(copy_file_range), BELLJAR_CALL(preadv2), BELLJAR_CALL(pwritev2),
    BELLJAR_CALL(statx), BELLJAR_CALL(close_range), BELLJAR_CALL(faccessat2), Call{"cachestat", kCachestat},
    Call{"getxattrat", kGetxattrat}, Call{"listxattrat", kListxattrat},
    Call{"removexattrat", kRemovexattrat},
});

inline constexpr auto kAttributeCalls = std::to_array<Call>({
    BELLJAR_CALL(setxattr), BELLJAR_CALL(lsetxattr), BELLJAR_CALL(fsetxattr), Call{"setxattrat", kSetxattrat},
});

inline constexpr auto kMemoryCalls = std::to_array<Call>({
    BELLJAR_CALL(mmap), BELLJAR_CALL(mprotect), BELLJAR_CALL(munmap), BELLJAR_CALL(brk), BELLJAR_CALL(mremap),
    BELLJAR_CALL(msync), BELLJAR_CALL(mincore), BELLJAR_CALL(madvise), BELLJAR_CALL(mlock), BELLJAR_CALL(munlock),
    BELLJAR_CALL(mlockall), BELLJAR_CALL(munlockall), BELLJAR_CALL(remap_file_pages), BELLJAR_CALL(memfd_create),
    BELLJAR_CALL(membarrier), BELLJAR_CALL(mlock2), BELLJAR_CALL(pkey_mprotect), BELLJAR_CALL(pkey_alloc),
    BELLJAR_CALL(pkey_free), BELLJAR_CALL(process_madvise), Call{"map_shadow_stack", kMapShadowStack},
    Call{"mseal", kMseal},
});

inline constexpr auto kProcessCalls = std::to_array<Call>({
    BELLJAR_CALL(rt_sigaction), BELLJAR_CALL(rt_sigprocmask), BELLJAR_CALL(rt_sigreturn), BELLJAR_CALL(sched_yield),
    BELLJAR_CALL(pause), BELLJAR_CALL(getpid), BELLJAR_CALL(fork), BELLJAR_CALL(vfork), BELLJAR_CALL(execve),
    BELLJAR_CALL(exit), BELLJAR_CALL(wait4), BELLJAR_CALL(kill), BELLJAR_CALL(uname), BELLJAR_CALL(getrlimit),
    BELLJAR_CALL(getrusage), BELLJAR_CALL(sysinfo), BELLJAR_CALL(times), BELLJAR_CALL(getuid), BELLJAR_CALL(getgid),
    BELLJAR_CALL(setuid), BELLJAR_CALL(setgid), BELLJAR_CALL(geteuid), BELLJAR_CALL(getegid), BELLJAR_CALL(setpgid),
    BELLJAR_CALL(getppid), BELLJAR_CALL(getpgrp), BELLJAR_CALL(setsid), BELLJAR_CALL(setreuid), BELLJAR_CALL(setregid),
    BELLJAR_CALL(getgroups), BELLJAR_CALL(setgroups), BELLJAR_CALL(setresuid), BELLJAR_CALL(getresuid),
    BELLJAR_CALL(setresgid), BELLJAR_CALL(getresgid), BELLJAR_CALL(getpgid), BELLJAR_CALL(setfsuid),
    BELLJAR_CALL(setfsgid), BELLJAR_CALL(getsid), BELLJAR_CALL(capget), BELLJAR_CALL(capset),
    BELLJAR_CALL(rt_sigpending), BELLJAR_CALL(rt_sigtimedwait), BELLJAR_CALL(rt_sigqueueinfo),
    BELLJAR_CALL(rt_sigsuspend), BELLJAR_CALL(sigaltstack), BELLJAR_CALL(getpriority), BELLJAR_CALL(setpriority),
    BELLJAR_CALL(sched_setparam), BELLJAR_CALL(sched_getparam), BELLJAR_CALL(sched_setscheduler),
    BELLJAR_CALL(sched_getscheduler), BELLJAR_CALL(sched_get_priority_max), BELLJAR_CALL(sched_get_priority_min),
    BELLJAR_CALL(sched_rr_get_interval), BELLJAR_CALL(prctl), BELLJAR_CALL(arch_prctl), BELLJAR_CALL(setrlimit),
    BELLJAR_CALL(gettid), BELLJAR_CALL(tkill), BELLJAR_CALL(futex), BELLJAR_CALL(sched_setaffinity),
    BELLJAR_CALL(sched_getaffinity), BELLJAR_CALL(set_tid_address), BELLJAR_CALL(restart_syscall),
    BELLJAR_CALL(exit_group), BELLJAR_CALL(tgkill), BELLJAR_CALL(waitid), BELLJAR_CALL(ioprio_set),
    BELLJAR_CALL(ioprio_get), BELLJAR_CALL(set_robust_list), BELLJAR_CALL(get_robust_list),
    BELLJAR_CALL(rt_tgsigqueueinfo), BELLJAR_CALL(getcpu), BELLJAR_CALL(sched_setattr),
    BELLJAR_CALL(sched_getattr), BELLJAR_CALL(getrandom), BELLJAR_CALL(execveat), BELLJAR_CALL(rseq),
    BELLJAR_CALL(pidfd_send_signal), BELLJAR_CALL(pidfd_open), BELLJAR_CALL(futex_waitv),
    Call{"futex_wake", kFutexWake}, Call{"futex_wait", kFutexWait}, Call{"futex_requeue", kFutexRequeue},
});

inline constexpr auto kWaitCalls = std::to_array<Call>({
    BELLJAR_CALL(poll), BELLJAR_CALL(select), BELLJAR_CALL(nanosleep), BELLJAR_CALL(getitimer), BELLJAR_CALL(alarm),
    BELLJAR_CALL(setitimer), BELLJAR_CALL(gettimeofday), BELLJAR_CALL(time), BELLJAR_CALL(io_setup),
    BELLJAR_CALL(io_destroy), BELLJAR_CALL(io_getevents), BELLJAR_CALL(io_submit), BELLJAR_CALL(io_cancel),
    BELLJAR_CALL(io_pgetevents), BELLJAR_CALL(epoll_create), BELLJAR_CALL(timer_create), BELLJAR_CALL(timer_settime),
    BELLJAR_CALL(timer_gettime), BELLJAR_CALL(timer_getoverrun), BELLJAR_CALL(timer_delete),
    BELLJAR_CALL(clock_gettime), BELLJAR_CALL(clock_getres), BELLJAR_CALL(clock_nanosleep), BELLJAR_CALL(epoll_wait),
    BELLJAR_CALL(epoll_ctl), BELLJAR_CALL(pselect6), BELLJAR_CALL(ppoll), BELLJAR_CALL(epoll_pwait),
    BELLJAR_CALL(signalfd), BELLJAR_CALL(timerfd_create), BELLJAR_CALL(eventfd), BELLJAR_CALL(timerfd_settime),
    BELLJAR_CALL(timerfd_gettime), BELLJAR_CALL(signalfd4), BELLJAR_CALL(eventfd2), BELLJAR_CALL(epoll_create1),
    BELLJAR_CALL(epoll_pwait2),
});

inline constexpr auto kSocketUseCalls = std::to_array<Call>({
    BELLJAR_CALL(connect), BELLJAR_CALL(accept), BELLJAR_CALL(sendto), BELLJAR_CALL(recvfrom), BELLJAR_CALL(sendmsg),
    BELLJAR_CALL(recvmsg), BELLJAR_CALL(shutdown), BELLJAR_CALL(bind), BELLJAR_CALL(listen), BELLJAR_CALL(getsockname),
    BELLJAR_CALL(getpeername), BELLJAR_CALL(setsockopt), BELLJAR_CALL(getsockopt), BELLJAR_CALL(accept4),
    BELLJAR_CALL(recvmmsg), BELLJAR_CALL(sendmmsg),
});

inline constexpr auto kIpcCalls = std::to_array<Call>({
    BELLJAR_CALL(shmget), BELLJAR_CALL(shmat), BELLJAR_CALL(shmctl), BELLJAR_CALL(semget), BELLJAR_CALL(semop),
    BELLJAR_CALL(semctl), BELLJAR_CALL(shmdt), BELLJAR_CALL(msgget), BELLJAR_CALL(msgsnd), BELLJAR_CALL(msgrcv),
    BELLJAR_CALL(msgctl), BELLJAR_CALL(semtimedop), BELLJAR_CALL(mq_open), BELLJAR_CALL(mq_unlink),
    BELLJAR_CALL(mq_timedsend), BELLJAR_CALL(mq_timedreceive), BELLJAR_CALL(mq_notify), BELLJAR_CALL(mq_getsetattr),
});

inline constexpr auto kDebugCalls = std::to_array<Call>({
    BELLJAR_CALL(ptrace), BELLJAR_CALL(process_vm_readv), BELLJAR_CALL(process_vm_writev), BELLJAR_CALL(pidfd_getfd),
    Call{"uretprobe", kUretprobe},
});

inline constexpr auto kSelfSandboxCalls = std::to_array<Call>({
    BELLJAR_CALL(seccomp), BELLJAR_CALL(landlock_create_ruleset), BELLJAR_CALL(landlock_add_rule),
    BELLJAR_CALL(landlock_restrict_self),
});

// clang-format on

// --------------------------------------------------------------------------------------- allowed, but not with this

// CLONE_NEW* of clone(2). CLONE_NEWTIME is not here: its bit lies in the exit signal's byte, and clone cannot make a
// time namespace (only clone3 and unshare can).
inline constexpr uint32_t kNamespaceFlags =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
inline constexpr auto kClone = std::to_array<Call>({BELLJAR_CALL(clone)});
inline constexpr auto kCloneCases = std::to_array<Case>({when(any_bits(0, kNamespaceFlags), EPERM)});

// ADDR_NO_RANDOMIZE is what gdb, rr and ThreadSanitizer ask for; 0xffffffff only asks. The rest changes how memory is
// laid out or read (READ_IMPLIES_EXEC, MMAP_PAGE_ZERO) and helps only exploits.
inline constexpr uint32_t kNoRandomize = ADDR_NO_RANDOMIZE;
inline constexpr auto kPersonality = std::to_array<Call>({BELLJAR_CALL(personality)});
inline constexpr auto kPersonalityCases =
    std::to_array<Case>({when(equal(0, 0xffffffffU), kPass), when(equal(0, PER_LINUX), kPass),
                         when(equal(0, PER_LINUX | kNoRandomize), kPass), when(equal(0, PER_LINUX32), kPass),
                         when(equal(0, PER_LINUX32 | kNoRandomize), kPass)});

// TIOCSTI and TIOCLINUX put characters into a terminal that others read; TIOCSETD loads line-discipline modules
// (dev.tty.ldisc_autoload), a kernel surface that is reachable through any pty.
inline constexpr auto kIoctl = std::to_array<Call>({BELLJAR_CALL(ioctl)});
inline constexpr auto kIoctlCases = std::to_array<Case>(
    {when(equal(1, TIOCSTI), EPERM), when(equal(1, TIOCLINUX), EPERM), when(equal(1, TIOCSETD), EPERM)});

// Leases. Whoever opens a file that has one waits until its holder is done with it or for /proc/sys/fs/lease-break-time
// (45 s), and with O_NONBLOCK does not get it at all. One for writing needs only that the file is its owner's and open
// for reading: on what is read-only here, the host's programs would be kept from it (fcntl(2), "Leases"). F_SETDELEG is
// its successor (Linux 6.19).
inline constexpr uint32_t kSetDelegation = F_SETLEASE + 16;
inline constexpr auto kFcntl = std::to_array<Call>({BELLJAR_CALL(fcntl)});
inline constexpr auto kFcntlCases =
    std::to_array<Case>({when(equal(1, F_SETLEASE), EPERM), when(equal(1, kSetDelegation), EPERM)});

// Limits of the guest's init, which has the agent's user ids and nothing else to keep others from them
// (check_prlimit_permission() in kernel/sys.c): a second of processor time would be its end, before it could say how
// the agent ended. To ask is refused too: whether there is a new limit is in a pointer, of which a filter compares one
// half.
inline constexpr auto kPrlimit = std::to_array<Call>({BELLJAR_CALL(prlimit64)});
inline constexpr auto kPrlimitCases = std::to_array<Case>({when(equal(0, 1), EPERM)});

// Set-id bits. Where the id map sends the guest's uid to a uid that means something on the host, a set-id file made in
// the guest is a set-id file of that uid on the host; nosuid on the guest's own mount does not help there.
inline constexpr uint32_t kSetIdBits = S_ISUID | S_ISGID;
inline constexpr uint32_t kTmpfileBit = O_TMPFILE & ~O_DIRECTORY;  // __O_TMPFILE; the kernel reads the mode with it
inline constexpr uint32_t kCreateFlags = O_CREAT | kTmpfileBit;

inline constexpr auto kModeSecond = std::to_array<Call>({
    BELLJAR_CALL(chmod),
    BELLJAR_CALL(fchmod),
    BELLJAR_CALL(creat),
    BELLJAR_CALL(mkdir),
});
inline constexpr auto kModeSecondCases = std::to_array<Case>({when(any_bits(1, kSetIdBits), EPERM)});

inline constexpr auto kModeThird = std::to_array<Call>({
    BELLJAR_CALL(fchmodat),
    Call{"fchmodat2", kFchmodat2},
    BELLJAR_CALL(mkdirat),
});
inline constexpr auto kModeThirdCases = std::to_array<Case>({when(any_bits(2, kSetIdBits), EPERM)});

// The mode argument is only read, and only there, when the flags create something (build_open_how in fs/open.c).
inline constexpr auto kOpen = std::to_array<Call>({BELLJAR_CALL(open)});
inline constexpr auto kOpenCases =
    std::to_array<Case>({when(any_bits(1, kCreateFlags), any_bits(2, kSetIdBits), EPERM)});

inline constexpr auto kOpenat = std::to_array<Call>({BELLJAR_CALL(openat)});
inline constexpr auto kOpenatCases =
    std::to_array<Case>({when(any_bits(2, kCreateFlags), any_bits(3, kSetIdBits), EPERM)});

// Device nodes as well: a character device 0:0 (an overlay whiteout) needs no capability since Linux 5.8. Bit 020000 is
// in S_IFCHR and S_IFBLK and in no type that mknod makes for an ordinary user (FIFO, regular file, socket).
inline constexpr uint32_t kDeviceBit = S_IFCHR & S_IFBLK;
inline constexpr auto kMknod = std::to_array<Call>({BELLJAR_CALL(mknod)});
inline constexpr auto kMknodCases = std::to_array<Case>({when(any_bits(1, kSetIdBits | kDeviceBit), EPERM)});
inline constexpr auto kMknodat = std::to_array<Call>({BELLJAR_CALL(mknodat)});
inline constexpr auto kMknodatCases = std::to_array<Case>({when(any_bits(2, kSetIdBits | kDeviceBit), EPERM)});

// RENAME_WHITEOUT leaves the same character device behind.
inline constexpr uint32_t kRenameWhiteout = 1U << 2U;
inline constexpr auto kRenameat2 = std::to_array<Call>({BELLJAR_CALL(renameat2)});
inline constexpr auto kRenameat2Cases = std::to_array<Case>({when(any_bits(4, kRenameWhiteout), EPERM)});

// The families, and within them the protocols, that an unprivileged program uses. Each further one is a kernel module
// that socket(2) would load for anyone. The flags SOCK_NONBLOCK and SOCK_CLOEXEC share the type argument, whose low
// four bits are the type (SOCK_TYPE_MASK). Protocol 0 of AF_NETLINK is NETLINK_ROUTE, of the inet families the default.
inline constexpr uint32_t kTypeMask = 0xf;
inline constexpr uint32_t kProtoIcmp = 1;
inline constexpr uint32_t kProtoTcp = 6;
inline constexpr uint32_t kProtoUdp = 17;
inline constexpr uint32_t kProtoIcmp6 = 58;
inline constexpr uint32_t kProtoMptcp = 262;  // what Go's listeners ask for first
constexpr Case inet(uint32_t family, uint32_t type, uint32_t protocol) {
  return when(equal(0, family), masked_equal(1, kTypeMask, type), equal(2, protocol), kPass);
}
inline constexpr auto kSocket = std::to_array<Call>({BELLJAR_CALL(socket)});
inline constexpr auto kSocketCases = std::to_array<Case>(
    {when(equal(0, AF_UNIX), kPass), when(equal(0, AF_NETLINK), equal(2, 0), kPass), inet(AF_INET, SOCK_STREAM, 0),
     inet(AF_INET, SOCK_STREAM, kProtoTcp), inet(AF_INET, SOCK_STREAM, kProtoMptcp), inet(AF_INET, SOCK_DGRAM, 0),
     inet(AF_INET, SOCK_DGRAM, kProtoUdp), inet(AF_INET, SOCK_DGRAM, kProtoIcmp),  // ping without privilege
     inet(AF_INET6, SOCK_STREAM, 0), inet(AF_INET6, SOCK_STREAM, kProtoTcp), inet(AF_INET6, SOCK_STREAM, kProtoMptcp),
     inet(AF_INET6, SOCK_DGRAM, 0), inet(AF_INET6, SOCK_DGRAM, kProtoUdp), inet(AF_INET6, SOCK_DGRAM, kProtoIcmp6),
     when(equal(0, AF_INET), masked_equal(1, kTypeMask, SOCK_RAW), EPERM),  // as the kernel answers without CAP_NET_RAW
     when(equal(0, AF_INET6), masked_equal(1, kTypeMask, SOCK_RAW), EPERM),
     when(equal(0, AF_INET), masked_equal(1, kTypeMask, SOCK_PACKET), EPERM),  // the old name of AF_PACKET
     when(equal(0, AF_INET), EPROTONOSUPPORT), when(equal(0, AF_INET6), EPROTONOSUPPORT)});
inline constexpr auto kSocketpair = std::to_array<Call>({BELLJAR_CALL(socketpair)});
inline constexpr auto kSocketpairCases = std::to_array<Case>({when(equal(0, AF_UNIX), kPass)});

// clang-format off

// ---------------------------------------------------------------------------------------------------------- refused

inline constexpr auto kMountCalls = std::to_array<Call>({
    BELLJAR_CALL(pivot_root), BELLJAR_CALL(chroot), BELLJAR_CALL(mount), BELLJAR_CALL(umount2), BELLJAR_CALL(open_tree),
    BELLJAR_CALL(move_mount), BELLJAR_CALL(fsopen), BELLJAR_CALL(fsconfig), BELLJAR_CALL(fsmount), BELLJAR_CALL(fspick),
    BELLJAR_CALL(mount_setattr), Call{"open_tree_attr", kOpenTreeAttr},
});
inline constexpr auto kNamespaceCalls = std::to_array<Call>({BELLJAR_CALL(unshare), BELLJAR_CALL(setns)});
inline constexpr auto kKeyCalls = std::to_array<Call>({
    BELLJAR_CALL(add_key), BELLJAR_CALL(request_key), BELLJAR_CALL(keyctl),
});
inline constexpr auto kKernelCodeCalls = std::to_array<Call>({
    BELLJAR_CALL(init_module), BELLJAR_CALL(delete_module), BELLJAR_CALL(finit_module), BELLJAR_CALL(kexec_load),
    BELLJAR_CALL(kexec_file_load), BELLJAR_CALL(bpf), BELLJAR_CALL(perf_event_open), BELLJAR_CALL(userfaultfd),
});
inline constexpr auto kMachineCalls = std::to_array<Call>({
    BELLJAR_CALL(syslog), BELLJAR_CALL(vhangup), BELLJAR_CALL(acct), BELLJAR_CALL(swapon), BELLJAR_CALL(swapoff),
    BELLJAR_CALL(reboot), BELLJAR_CALL(iopl), BELLJAR_CALL(ioperm), BELLJAR_CALL(quotactl), BELLJAR_CALL(quotactl_fd), BELLJAR_CALL(fanotify_init),
    BELLJAR_CALL(fanotify_mark), BELLJAR_CALL(open_by_handle_at),
});
inline constexpr auto kHostNameCalls = std::to_array<Call>({BELLJAR_CALL(sethostname), BELLJAR_CALL(setdomainname)});
inline constexpr auto kClockCalls = std::to_array<Call>({
    BELLJAR_CALL(adjtimex), BELLJAR_CALL(settimeofday), BELLJAR_CALL(clock_settime), BELLJAR_CALL(clock_adjtime),
});
inline constexpr auto kNumaCalls = std::to_array<Call>({
    BELLJAR_CALL(mbind), BELLJAR_CALL(set_mempolicy), BELLJAR_CALL(get_mempolicy), BELLJAR_CALL(migrate_pages),
    BELLJAR_CALL(move_pages), BELLJAR_CALL(set_mempolicy_home_node),
});
inline constexpr auto kUringCalls = std::to_array<Call>({
    BELLJAR_CALL(io_uring_setup), BELLJAR_CALL(io_uring_enter), BELLJAR_CALL(io_uring_register),
});
inline constexpr auto kOpaqueCalls = std::to_array<Call>({BELLJAR_CALL(clone3), BELLJAR_CALL(openat2)});
inline constexpr auto kUnneededCalls = std::to_array<Call>({
    BELLJAR_CALL(modify_ldt), BELLJAR_CALL(kcmp), BELLJAR_CALL(memfd_secret), BELLJAR_CALL(process_mrelease),
    BELLJAR_CALL(set_thread_area), BELLJAR_CALL(get_thread_area), BELLJAR_CALL(ustat), BELLJAR_CALL(sysfs),
    BELLJAR_CALL(lookup_dcookie), Call{"statmount", kStatmount}, Call{"listmount", kListmount},
    Call{"lsm_get_self_attr", kLsmGetSelfAttr}, Call{"lsm_set_self_attr", kLsmSetSelfAttr},
    Call{"lsm_list_modules", kLsmListModules}, Call{"file_getattr", kFileGetattr}, Call{"file_setattr", kFileSetattr},
    Call{"listns", kListns},
});
inline constexpr auto kDeadCalls = std::to_array<Call>({
    BELLJAR_CALL(uselib), BELLJAR_CALL(_sysctl), BELLJAR_CALL(create_module), BELLJAR_CALL(get_kernel_syms),
    BELLJAR_CALL(query_module), BELLJAR_CALL(nfsservctl), BELLJAR_CALL(getpmsg), BELLJAR_CALL(putpmsg),
    BELLJAR_CALL(afs_syscall), BELLJAR_CALL(tuxcall), BELLJAR_CALL(security), BELLJAR_CALL(epoll_ctl_old),
    BELLJAR_CALL(epoll_wait_old), BELLJAR_CALL(vserver),
});

// clang-format on

#undef BELLJAR_CALL

inline constexpr auto kGroups = std::to_array<Group>({
    {"files", "work on files that the mounts and landlock already bound", kFileCalls, {}, kPass},
    {"attributes", "set extended attributes; file capabilities take a capability", kAttributeCalls, {}, kPass},
    {"memory", "a process's own memory; mseal and shadow stacks harden it", kMemoryCalls, {}, kPass},
    {"processes", "start, end, schedule and signal processes of the own pid namespace", kProcessCalls, {}, kPass},
    {"waiting", "clocks read, timers, poll and epoll, the old asynchronous I/O", kWaitCalls, {}, kPass},
    {"sockets in use", "what a socket may be is decided when it is made", kSocketUseCalls, {}, kPass},
    {"ipc", "bounded by the ipc namespace", kIpcCalls, {}, kPass},
    {"debugging",
     "gdb, strace and sanitizers; bounded by the pid namespace, and seccomp looks again after a tracer "
     "changed a call (Linux 4.8)",
     kDebugCalls,
     {},
     kPass},
    {"self-sandboxing", "a tool may only narrow itself further", kSelfSandboxCalls, {}, kPass},

    {"clone", "processes and threads, no namespaces", kClone, kCloneCases, kPass},
    {"personality", "only what debuggers need", kPersonality, kPersonalityCases, EPERM},
    {"ioctl", "no input pushed into a terminal, no line disciplines", kIoctl, kIoctlCases, kPass},
    {"fcntl", "no leases, which keep others from a file", kFcntl, kFcntlCases, kPass},
    {"prlimit64", "no limits for the guest's init", kPrlimit, kPrlimitCases, kPass},
    {"mode, second argument", "no set-id bits", kModeSecond, kModeSecondCases, kPass},
    {"mode, third argument", "no set-id bits", kModeThird, kModeThirdCases, kPass},
    {"open", "no set-id bits on what it creates", kOpen, kOpenCases, kPass},
    {"openat", "no set-id bits on what it creates", kOpenat, kOpenatCases, kPass},
    {"mknod", "no set-id bits, no devices", kMknod, kMknodCases, kPass},
    {"mknodat", "no set-id bits, no devices", kMknodat, kMknodatCases, kPass},
    {"renameat2", "no whiteout devices", kRenameat2, kRenameat2Cases, kPass},
    {"socket", "unix, inet, inet6 and netlink-route, nothing raw", kSocket, kSocketCases, EAFNOSUPPORT},
    {"socketpair", "unix only", kSocketpair, kSocketpairCases, EAFNOSUPPORT},

    {"mounts", "the guest's view of files is what the launch made", kMountCalls, {}, EPERM},
    {"namespaces", "no nesting: a new user namespace brings back capabilities", kNamespaceCalls, {}, EPERM},
    {"keyrings", "not namespaced: keys of the launcher's session could be read", kKeyCalls, {}, EPERM},
    {"kernel code",
     "modules, kexec, bpf, perf and userfaultfd: the richest source of kernel exploits",
     kKernelCodeCalls,
     {},
     EPERM},
    {"machine", "state of the whole machine, and ways around the file view", kMachineCalls, {}, EPERM},
    {"host name", "the guest's name is the launch's", kHostNameCalls, {}, EPERM},
    {"clocks set", "the clock belongs to the host", kClockCalls, {}, EPERM},
    {"numa", "memory placement is an operator's affair; libnuma takes EPERM as no NUMA", kNumaCalls, {}, EPERM},
    {"io_uring",
     "does the work of other calls where no filter looks; ENOSYS makes runtimes fall back",
     kUringCalls,
     {},
     ENOSYS},
    {"opaque arguments",
     "flags and modes lie in memory, where a filter cannot look; libc falls back on ENOSYS",
     kOpaqueCalls,
     {},
     ENOSYS},
    {"unneeded", "no agent or tool of theirs was seen to need it", kUnneededCalls, {}, ENOSYS},
    {"dead", "not implemented by any kernel that belljar runs on, or gone", kDeadCalls, {}, ENOSYS},
});

// With nested = true. What a sandbox inside is made of passes: its user namespace gives it capabilities over namespaces
// and mounts of its own, never over the guest's, whose mounts it gets locked (mount_namespaces(7), "Restrictions on
// mount namespaces"). All else is as above, and clone3 is still unknown, so that libc's clone shows its flags.
//
// But for one: who is root in such a namespace may give capabilities to a file that it owns (user_namespaces(7),
// capabilities(7), "Namespaced file capabilities"), and through an id-mapped mount those of a folder of root's are
// root's on the host. Which attribute it is lies in memory, so none can be set; programs know file systems without any.
constexpr bool sandboxes_need(const Group& group) {
  return group.name == "clone" || group.name == "mounts" || group.name == "namespaces" || group.name == "host name";
}
constexpr std::array<Group, kGroups.size()> nested_groups() {
  std::array<Group, kGroups.size()> out = kGroups;
  for (Group& group : out) {
    if (group.name == "attributes") group.otherwise = EOPNOTSUPP;
    if (!sandboxes_need(group)) continue;
    group.reason = "a sandbox inside is made of it";
    group.cases = {};
    group.otherwise = kPass;
  }
  return out;
}
inline constexpr auto kNestedGroups = nested_groups();

inline constexpr FilterOptions kOptions{.audit_arch = AUDIT_ARCH_X86_64, .unknown = ENOSYS, .foreign = ENOSYS};

static_assert(calls_are_unique(kGroups));

}  // namespace belljar::linux::rules
