// What the launcher may still ask of the kernel once it has sealed itself: to move bytes, to watch the guest and to
// reach hosts. An allowlist; everything else answers ENOSYS, and what a program would try first EACCES or EPERM.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "linux/seccomp_compiler.h"

#ifndef __x86_64__
#error "The rules were reviewed for x86-64 only: other architectures have other calls and other argument orders."
#endif

namespace belljar::linux::launcher_rules {

#define BELLJAR_CALL(name) \
  Call {                   \
    #name, SYS_##name      \
  }

// clang-format off: one call a line would hide the table's shape.

inline constexpr auto kByteCalls = std::to_array<Call>({
    BELLJAR_CALL(read), BELLJAR_CALL(write), BELLJAR_CALL(readv), BELLJAR_CALL(writev), BELLJAR_CALL(pread64),
    BELLJAR_CALL(pwrite64), BELLJAR_CALL(splice), BELLJAR_CALL(close), BELLJAR_CALL(close_range), BELLJAR_CALL(dup),
    BELLJAR_CALL(dup2), BELLJAR_CALL(dup3), BELLJAR_CALL(pipe2), BELLJAR_CALL(lseek), BELLJAR_CALL(fstat),
    BELLJAR_CALL(fstatfs), BELLJAR_CALL(fsync), BELLJAR_CALL(fdatasync), BELLJAR_CALL(ftruncate),
});

inline constexpr auto kMemoryCalls = std::to_array<Call>({
    BELLJAR_CALL(munmap), BELLJAR_CALL(brk), BELLJAR_CALL(mremap), BELLJAR_CALL(madvise),
});

inline constexpr auto kThreadCalls = std::to_array<Call>({
    BELLJAR_CALL(futex), BELLJAR_CALL(sched_yield), BELLJAR_CALL(rt_sigprocmask), BELLJAR_CALL(rt_sigaction),
    BELLJAR_CALL(rt_sigreturn), BELLJAR_CALL(rt_sigtimedwait), BELLJAR_CALL(sigaltstack), BELLJAR_CALL(restart_syscall),
    BELLJAR_CALL(exit), BELLJAR_CALL(exit_group), BELLJAR_CALL(wait4), BELLJAR_CALL(waitid),
    BELLJAR_CALL(pidfd_send_signal),
});

inline constexpr auto kWaitCalls = std::to_array<Call>({
    BELLJAR_CALL(poll), BELLJAR_CALL(ppoll), BELLJAR_CALL(epoll_create1), BELLJAR_CALL(epoll_ctl),
    BELLJAR_CALL(epoll_wait), BELLJAR_CALL(epoll_pwait), BELLJAR_CALL(eventfd2), BELLJAR_CALL(timerfd_create),
    BELLJAR_CALL(timerfd_settime), BELLJAR_CALL(timerfd_gettime), BELLJAR_CALL(nanosleep), BELLJAR_CALL(clock_nanosleep),
});

inline constexpr auto kFactCalls = std::to_array<Call>({
    BELLJAR_CALL(clock_gettime), BELLJAR_CALL(clock_getres), BELLJAR_CALL(gettimeofday), BELLJAR_CALL(time),
    BELLJAR_CALL(getpid), BELLJAR_CALL(gettid), BELLJAR_CALL(getppid), BELLJAR_CALL(getuid), BELLJAR_CALL(geteuid),
    BELLJAR_CALL(getgid), BELLJAR_CALL(getegid), BELLJAR_CALL(getrandom), BELLJAR_CALL(getrusage),
    BELLJAR_CALL(getrlimit), BELLJAR_CALL(sysinfo), BELLJAR_CALL(uname), BELLJAR_CALL(getcpu),
    BELLJAR_CALL(sched_getaffinity), BELLJAR_CALL(capget),
});

inline constexpr auto kSocketCalls = std::to_array<Call>({
    BELLJAR_CALL(connect), BELLJAR_CALL(accept4), BELLJAR_CALL(sendto), BELLJAR_CALL(recvfrom), BELLJAR_CALL(sendmsg),
    BELLJAR_CALL(recvmsg), BELLJAR_CALL(sendmmsg), BELLJAR_CALL(recvmmsg), BELLJAR_CALL(shutdown),
    BELLJAR_CALL(getsockname), BELLJAR_CALL(getpeername), BELLJAR_CALL(setsockopt), BELLJAR_CALL(getsockopt),
});

// TCP to the hosts, UDP to the name servers. No unix sockets, so no other program of this machine is spoken to but over
// what is open already.
inline constexpr uint32_t kTypeMask = 0xf;
inline constexpr uint32_t kProtoTcp = 6;
inline constexpr uint32_t kProtoUdp = 17;
constexpr Case inet(uint32_t family, uint32_t type, uint32_t protocol) {
  return when(equal(0, family), masked_equal(1, kTypeMask, type), equal(2, protocol), kPass);
}
inline constexpr auto kSocket = std::to_array<Call>({BELLJAR_CALL(socket)});
inline constexpr auto kSocketCases = std::to_array<Case>(
    {inet(AF_INET, SOCK_STREAM, 0), inet(AF_INET, SOCK_STREAM, kProtoTcp), inet(AF_INET6, SOCK_STREAM, 0),
     inet(AF_INET6, SOCK_STREAM, kProtoTcp), inet(AF_INET, SOCK_DGRAM, 0), inet(AF_INET, SOCK_DGRAM, kProtoUdp),
     inet(AF_INET6, SOCK_DGRAM, 0), inet(AF_INET6, SOCK_DGRAM, kProtoUdp)});

// Between this process and whom it hands one end to: nobody is connected to.
inline constexpr auto kPair = std::to_array<Call>({BELLJAR_CALL(socketpair)});
inline constexpr auto kPairCases =
    std::to_array<Case>({when(equal(0, AF_UNIX), masked_equal(1, kTypeMask, SOCK_STREAM), kPass)});

// No memory is made executable: what is injected cannot be run.
inline constexpr auto kMap = std::to_array<Call>({BELLJAR_CALL(mmap), BELLJAR_CALL(mprotect)});
inline constexpr auto kMapCases = std::to_array<Case>({when(any_bits(2, PROT_EXEC), EACCES)});

// F_SETOWN and F_SETSIG would send any signal to any process of this user; so would FIOSETOWN below.
inline constexpr auto kFcntl = std::to_array<Call>({BELLJAR_CALL(fcntl)});
inline constexpr auto kFcntlCases = std::to_array<Case>(
    {when(equal(1, F_GETFL), kPass), when(equal(1, F_SETFL), kPass), when(equal(1, F_GETFD), kPass),
     when(equal(1, F_SETFD), kPass), when(equal(1, F_DUPFD_CLOEXEC), kPass), when(equal(1, F_SETPIPE_SZ), kPass),
     when(equal(1, F_GETPIPE_SZ), kPass)});

// The terminal's settings, size and queues, and how much there is to read. Nothing is typed into it (TIOCSTI).
inline constexpr auto kIoctl = std::to_array<Call>({BELLJAR_CALL(ioctl)});
inline constexpr auto kIoctlCases = std::to_array<Case>(
    {when(equal(1, TCGETS), kPass), when(equal(1, TCSETS), kPass), when(equal(1, TCSETSW), kPass),
     when(equal(1, TCSETSF), kPass), when(equal(1, TCFLSH), kPass), when(equal(1, TCSBRK), kPass),
     when(equal(1, TIOCGWINSZ), kPass), when(equal(1, TIOCSWINSZ), kPass), when(equal(1, TIOCGPGRP), kPass),
     when(equal(1, TIOCOUTQ), kPass), when(equal(1, FIONREAD), kPass)});

// Answered as a host that forbids it would, so that a library that tries goes on without.
inline constexpr auto kFileCalls = std::to_array<Call>({
    BELLJAR_CALL(open), BELLJAR_CALL(openat), BELLJAR_CALL(openat2), BELLJAR_CALL(creat), BELLJAR_CALL(stat),
    BELLJAR_CALL(lstat), BELLJAR_CALL(newfstatat), BELLJAR_CALL(statx), BELLJAR_CALL(access), BELLJAR_CALL(faccessat),
    BELLJAR_CALL(faccessat2), BELLJAR_CALL(readlink), BELLJAR_CALL(readlinkat), BELLJAR_CALL(getcwd),
    BELLJAR_CALL(unlink), BELLJAR_CALL(unlinkat), BELLJAR_CALL(rename), BELLJAR_CALL(renameat), BELLJAR_CALL(renameat2),
    BELLJAR_CALL(mkdir), BELLJAR_CALL(mkdirat), BELLJAR_CALL(rmdir),
});
inline constexpr auto kProcessCalls = std::to_array<Call>({
    BELLJAR_CALL(execve), BELLJAR_CALL(execveat), BELLJAR_CALL(clone), BELLJAR_CALL(clone3), BELLJAR_CALL(fork),
    BELLJAR_CALL(vfork), BELLJAR_CALL(kill), BELLJAR_CALL(tkill), BELLJAR_CALL(tgkill), BELLJAR_CALL(pidfd_open),
    BELLJAR_CALL(pidfd_getfd), BELLJAR_CALL(ptrace), BELLJAR_CALL(process_vm_readv), BELLJAR_CALL(process_vm_writev),
    BELLJAR_CALL(prctl), BELLJAR_CALL(prlimit64),
});

// clang-format on

#undef BELLJAR_CALL

inline constexpr auto kGroups = std::to_array<Group>({
    {"bytes", "through what is open: pipes, sockets, report and audit", kByteCalls, {}, kPass},
    {"memory", "the heap", kMemoryCalls, {}, kPass},
    {"threads", "those that there are; signals only through the pidfds that are open", kThreadCalls, {}, kPass},
    {"waiting", "poll, epoll and timers", kWaitCalls, {}, kPass},
    {"facts", "clocks, ids, random bytes", kFactCalls, {}, kPass},
    {"sockets in use", "what a socket may be is decided when it is made", kSocketCalls, {}, kPass},

    {"socket", "TCP and UDP", kSocket, kSocketCases, EACCES},
    {"socketpair", "streams between processes", kPair, kPairCases, EACCES},
    {"map", "nothing executable", kMap, kMapCases, kPass},
    {"fcntl", "flags, copies and pipe sizes", kFcntl, kFcntlCases, EPERM},
    {"ioctl", "a terminal's settings and size", kIoctl, kIoctlCases, EPERM},

    {"files", "none is opened, looked at, made or removed", kFileCalls, {}, EACCES},
    {"processes", "none is started, and none but the guest is signalled", kProcessCalls, {}, EPERM},
});

inline constexpr FilterOptions kOptions{.audit_arch = AUDIT_ARCH_X86_64, .unknown = ENOSYS, .foreign = ENOSYS};

static_assert(calls_are_unique(kGroups));

}  // namespace belljar::linux::launcher_rules
