// Init, and whatever else is not the agent's.
#include <dirent.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "breakout/hostile.h"

namespace hostile {
namespace {

bool alive(pid_t pid) {
  return ::access(("/proc/" + std::to_string(pid)).c_str(), F_OK) == 0;
}

// The kernel drops signals to init that it does not handle; kill(2) says 0 all the same.
Outcome signal_init(int signal) {
  const long result = ::kill(1, signal);
  const std::string answer = result == 0 ? "sent" : strerrorname_np(errno);
  ::usleep(20000);
  const std::string status = read_start("/proc/1/stat");
  if (status.find(" T ") != std::string::npos || status.find(" t ") != std::string::npos) return through("it stopped");
  return alive(1) ? held(answer + ", it goes on") : through("it ended");
}

Outcome every_descriptor(Outcome (*use)(int fd)) {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return held("none to see");
  while (const dirent* entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (fd <= STDERR_FILENO || fd == ::dirfd(folder)) continue;
    if (const Outcome each = use(fd); each.through) return each;
  }
  ::closedir(folder);
  return held("nothing beyond descriptor 2");
}

Outcome push_input(unsigned long request, int fd) {
  char byte = 'x';
  return refused_with(::syscall(SYS_ioctl, fd, request, &byte), EPERM);
}

// The controlling one, into which its own processes may push (tty_ioctl(4), TIOCSTI).
int own_terminal() {
  int master = -1;
  int slave = -1;
  ::setsid();
  if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) return -1;
  ::ioctl(slave, TIOCSCTTY, 0);
  return slave;
}

const Attempt kAttempts[] = {
    {"kill-init", [] { return signal_init(SIGKILL); }},
    {"stop-init", [] { return signal_init(SIGSTOP); }},
    {"terminate-init", [] { return signal_init(SIGTERM); }},
    {"segfault-init", [] { return signal_init(SIGSEGV); }},
    {"child-signal-to-init", [] { return signal_init(SIGCHLD); }},
    {"real-time-signal-to-init", [] { return signal_init(SIGRTMIN); }},
    {"forge-a-signal-to-init",
     [] {
       siginfo_t info{};
       info.si_signo = SIGKILL;
       info.si_code = SI_KERNEL;
       return refused(::syscall(SYS_rt_sigqueueinfo, 1, SIGKILL, &info));
     }},
    {"kill-init-by-descriptor",
     [] {
       const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, 1, 0));
       if (fd < 0) return held(strerrorname_np(errno));
       ::syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0);
       ::usleep(20000);
       return alive(1) ? held("it goes on") : through("it ended");
     }},
    {"trace-init", [] { return refused(::ptrace(PTRACE_ATTACH, 1, nullptr, nullptr)); }},
    {"seize-init", [] { return refused(::ptrace(PTRACE_SEIZE, 1, nullptr, nullptr)); }},
    {"read-memory-of-init",
     [] {
       std::array<char, 64> bytes{};
       iovec local{bytes.data(), bytes.size()};
       iovec remote{reinterpret_cast<void*>(0x400000), bytes.size()};
       return refused_with(::process_vm_readv(1, &local, 1, &remote, 1, 0), EPERM);
     }},
    {"write-memory-of-init",
     [] {
       std::array<char, 64> bytes{};
       iovec local{bytes.data(), bytes.size()};
       iovec remote{reinterpret_cast<void*>(0x400000), bytes.size()};
       return refused_with(::process_vm_writev(1, &local, 1, &remote, 1, 0), EPERM);
     }},
    {"memory-file-of-init", [] { return refused(::open("/proc/1/mem", O_RDWR | O_CLOEXEC)); }},
    {"memory-map-of-init",
     [] { return read_start("/proc/1/maps").empty() ? held(strerrorname_np(errno)) : through("read it"); }},
    {"environment-of-init",
     [] { return read_start("/proc/1/environ").empty() ? held(strerrorname_np(errno)) : through("read it"); }},
    {"descriptors-of-init", [] { return refused(::open("/proc/1/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }},
    {"take-a-descriptor-of-init",
     [] {
       const auto pid = static_cast<int>(::syscall(SYS_pidfd_open, 1, 0));
       for (int fd = 0; fd < 64; ++fd) {
         const auto taken = static_cast<int>(::syscall(SYS_pidfd_getfd, pid, fd, 0));
         if (taken >= 0) return through("descriptor " + std::to_string(fd));
         if (errno != EPERM) return through(std::string("stopped by ") + strerrorname_np(errno));
       }
       return held("EPERM");
     }},
    {"limits-of-init-for-core-files",
     [] {
       // Init's limits are the agent's to narrow, being of the same user; what it must not do is raise one.
       const rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
       return refused(::prlimit(1, RLIMIT_CORE, &limit, nullptr));
     }},
    {"another-process-of-the-host",
     [] {
       // Every number that is not of this pid namespace.
       int seen = 0;
       for (pid_t pid = 1; pid < 100000; ++pid) {
         if (::kill(pid, 0) == 0 || errno == EPERM) ++seen;
       }
       return seen < 20 ? held(std::to_string(seen) + " processes in sight")
                        : through(std::to_string(seen) + " in sight");
     }},
    {"send-on-descriptors",
     [] {
       return every_descriptor([](int fd) {
         const std::array<char, 4096> message{};
         return ::send(fd, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != ENOTSOCK
                    ? through("descriptor " + std::to_string(fd) + " is a socket")
                    : through("descriptor " + std::to_string(fd) + " was inherited");
       });
     }},
    {"speak-for-init-on-guessed-descriptors",
     [] {
       for (int fd = 3; fd < 1024; ++fd) {
         if (::send(fd, "blj", 3, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return through("descriptor " + std::to_string(fd));
       }
       return held("none is open");
     }},
    {"terminal-of-the-caller", [] { return refused(::open("/dev/tty", O_RDWR | O_CLOEXEC)); }},
    {"terminals-of-the-host",
     [] {
       DIR* folder = ::opendir("/dev/pts");
       if (folder == nullptr) return held(strerrorname_np(errno));
       std::string others;
       while (const dirent* entry = ::readdir(folder)) {
         if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') others += std::string(entry->d_name) + " ";
       }
       ::closedir(folder);
       return others.empty() ? held("none") : through(others);
     }},
    {"push-input", [] { return push_input(TIOCSTI, own_terminal()); }},
    {"push-input-high-bits", [] { return push_input(TIOCSTI | (1UL << 32U), own_terminal()); }},
    {"push-input-to-stdin", [] { return push_input(TIOCSTI, STDIN_FILENO); }},
    {"console-paste", [] { return push_input(TIOCLINUX, own_terminal()); }},
    {"line-discipline",
     [] {
       int discipline = 15;
       return refused_with(::ioctl(own_terminal(), TIOCSETD, &discipline), EPERM);
     }},
    {"raise-priority", [] { return refused(::setpriority(PRIO_PROCESS, 0, -5)); }},
    {"real-time",
     [] {
       const std::array<int, 1> priority{50};
       return refused(::syscall(SYS_sched_setscheduler, 0, 1, priority.data()));
     }},
    {"raise-limits",
     [] {
       const rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
       for (const auto resource : {RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_CORE}) {
         if (::setrlimit(resource, &limit) == 0) return through("raised " + std::to_string(resource));
       }
       return held(strerrorname_np(errno));
     }},
    {"core-dump",
     [] {
       const pid_t pid = ::fork();
       if (pid == 0) ::abort();
       int status = 0;
       ::waitpid(pid, &status, 0);
       if (WCOREDUMP(status)) return through("the kernel dumped it");
       return ::access("core", F_OK) == 0 ? through("there is a core file") : held("no core file");
     }},
    {"become-root", [] { return refused(::setuid(0)); }},
    {"become-another", [] { return refused(::setresuid(::getuid() + 1, ::getuid() + 1, ::getuid() + 1)); }},
    {"become-another-group", [] { return refused(::setresgid(0, 0, 0)); }},
    {"join-groups",
     [] {
       const gid_t group = 0;
       return refused(::syscall(SYS_setgroups, 1, &group));
     }},
};

}  // namespace

std::span<const Attempt> process_attempts() {
  return kAttempts;
}

}  // namespace hostile
