// What a guest can and cannot do on real files and terminals under the filter.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "linux/filtered_child.h"
#include "linux/landlock_domain.h"

namespace belljar::linux {
namespace {

using testing::agent_program;
using testing::in_child;
using testing::with_rule_replaced;

constexpr uint64_t kHigh = uint64_t{1} << 40U;

// A folder on a tmpfs, where whiteouts and unnamed files work, that goes with its contents.
class Scratch {
 public:
  Scratch() {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
    fd_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT_GE(fd_, 0);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    close(fd_);
    std::filesystem::remove_all(path_);
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::string at(const char* name) const { return path_ + "/" + name; }
  // Mode of `name`, or 0 when there is no such file.
  [[nodiscard]] mode_t mode(const char* name) const {
    struct stat info{};
    return fstatat(fd_, name, &info, AT_SYMLINK_NOFOLLOW) == 0 ? info.st_mode : 0;
  }

 private:
  std::string path_ = "/dev/shm/belljar-seccomp-XXXXXX";
  int fd_ = -1;
};

int result(long value) {
  return value == -1 ? errno : 0;
}

// One way to leave a file with a set-id bit named "victim" in the folder.
struct SetIdWay {
  const char* name;
  uint32_t number;
  bool needs_file;  // "victim" exists before, plain
  bool kernel_keeps_bits;
  std::function<int(const Scratch&, uint64_t bits)> act;
};

int open_unnamed_and_link(const Scratch& dir, uint64_t bits) {
  const long fd = syscall(SYS_openat, dir.fd(), ".", O_TMPFILE | O_RDWR, bits | 0755U);
  if (fd < 0) return errno;
  const std::string source = "/proc/self/fd/" + std::to_string(fd);
  return result(linkat(AT_FDCWD, source.c_str(), dir.fd(), "victim", AT_SYMLINK_FOLLOW));
}

int change_open_file(const Scratch& dir, uint64_t bits) {
  const int fd = openat(dir.fd(), "victim", O_RDONLY | O_CLOEXEC);
  return fd < 0 ? 200 : result(syscall(SYS_fchmod, fd, bits | 0755U));
}

std::vector<SetIdWay> set_id_ways() {
  return {
      {"chmod", SYS_chmod, true, true,
       [](const Scratch& d, uint64_t b) { return result(syscall(SYS_chmod, d.at("victim").c_str(), b | 0755U)); }},
      {"fchmod", SYS_fchmod, true, true, change_open_file},
      {"fchmodat", SYS_fchmodat, true, true,
       [](const Scratch& d, uint64_t b) { return result(syscall(SYS_fchmodat, d.fd(), "victim", b | 0755U)); }},
      {"fchmodat2", rules::kFchmodat2, true, true,
       [](const Scratch& d, uint64_t b) { return result(syscall(rules::kFchmodat2, d.fd(), "victim", b | 0755U, 0)); }},
      {"creat", SYS_creat, false, true,
       [](const Scratch& d, uint64_t b) { return result(syscall(SYS_creat, d.at("victim").c_str(), b | 0755U)); }},
      {"open", SYS_open, false, true,
       [](const Scratch& d, uint64_t b) {
         return result(syscall(SYS_open, d.at("victim").c_str(), O_CREAT | O_RDWR | kHigh, b | 0755U));
       }},
      {"openat", SYS_openat, false, true,
       [](const Scratch& d, uint64_t b) {
         return result(syscall(SYS_openat, d.fd(), "victim", O_CREAT | O_RDWR | kHigh, b | 0755U));
       }},
      {"openat O_TMPFILE", SYS_openat, false, true, open_unnamed_and_link},
      {"mknod", SYS_mknod, false, true,
       [](const Scratch& d, uint64_t b) {
         return result(syscall(SYS_mknod, d.at("victim").c_str(), b | S_IFREG | 0755U, 0));
       }},
      {"mknodat", SYS_mknodat, false, true,
       [](const Scratch& d, uint64_t b) {
         return result(syscall(SYS_mknodat, d.fd(), "victim", b | S_IFREG | 0755U, 0));
       }},
      // The kernel itself drops the bits of mkdir's mode (vfs_mkdir); the rule does not rely on it.
      {"mkdir", SYS_mkdir, false, false,
       [](const Scratch& d, uint64_t b) { return result(syscall(SYS_mkdir, d.at("victim").c_str(), b | 0755U)); }},
      {"mkdirat", SYS_mkdirat, false, false,
       [](const Scratch& d, uint64_t b) { return result(syscall(SYS_mkdirat, d.fd(), "victim", b | 0755U)); }},
  };
}

TEST(SeccompGuest, NoWayToASetIdFile) {
  umask(022);  // whoever runs the tests may have a stricter one
  for (const SetIdWay& way : set_id_ways()) {
    for (const uint64_t bits : {uint64_t{S_ISUID}, uint64_t{S_ISGID}, uint64_t{S_ISUID} | S_ISGID | kHigh}) {
      SCOPED_TRACE(std::string(way.name) + " " + std::to_string(bits));
      const auto prepare = [&](const Scratch& dir) {
        if (way.needs_file) close(openat(dir.fd(), "victim", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
      };
      Scratch dir;
      prepare(dir);
      EXPECT_EQ(in_child(agent_program(), [&] { return way.act(dir, bits); }), EPERM);
      EXPECT_EQ(dir.mode("victim") & (S_ISUID | S_ISGID), 0U);
      EXPECT_EQ(dir.mode("victim") != 0, way.needs_file);
      // Without the bits the same call passes.
      EXPECT_EQ(in_child(agent_program(), [&] { return way.act(dir, 0); }), 0);
      EXPECT_EQ(dir.mode("victim") & 07777U, 0755U);

      Scratch open_dir;
      prepare(open_dir);
      const int open_result = in_child(with_rule_replaced(way.number, kPass), [&] { return way.act(open_dir, bits); });
      if (way.number == rules::kFchmodat2 && open_result == ENOSYS) continue;  // a kernel before 6.6 has no such call
      EXPECT_EQ(open_result, 0);
      EXPECT_EQ((open_dir.mode("victim") & (S_ISUID | S_ISGID)) != 0, way.kernel_keeps_bits);
    }
  }
}

TEST(SeccompGuest, AModeThatTheKernelDoesNotReadIsNotJudged) {
  Scratch dir;
  close(openat(dir.fd(), "plain", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  EXPECT_EQ(in_child(agent_program(), [&] { return result(syscall(SYS_openat, dir.fd(), "plain", O_RDONLY, 06755)); }),
            0);
  EXPECT_EQ(in_child(agent_program(),
                     [&] { return result(syscall(SYS_openat, dir.fd(), ".", O_RDONLY | O_DIRECTORY, 06755)); }),
            0);
}

TEST(SeccompGuest, NoDeviceNodes) {
  struct Way {
    uint32_t number;
    std::function<int(const Scratch&)> act;
  };
  const std::vector<Way> ways = {
      {SYS_mknod, [](const Scratch& d) { return result(syscall(SYS_mknod, d.at("dev").c_str(), S_IFCHR | 0600, 0)); }},
      {SYS_mknodat,
       [](const Scratch& d) { return result(syscall(SYS_mknodat, d.fd(), "dev", S_IFCHR | 0600 | kHigh, 0)); }},
      {SYS_renameat2,
       [](const Scratch& d) {
         return result(syscall(SYS_renameat2, d.fd(), "dev", d.fd(), "b", rules::kRenameWhiteout | kHigh));
       }},
  };
  for (const Way& way : ways) {
    SCOPED_TRACE(way.number);
    for (const bool filtered : {true, false}) {
      Scratch dir;
      if (way.number == SYS_renameat2) close(openat(dir.fd(), "dev", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
      const auto program = filtered ? agent_program() : with_rule_replaced(way.number, kPass);
      EXPECT_EQ(in_child(program, [&] { return way.act(dir); }), filtered ? EPERM : 0);
      EXPECT_EQ(S_ISCHR(dir.mode("dev")), !filtered);
    }
  }
  Scratch dir;
  const auto block = [&] { return result(syscall(SYS_mknodat, dir.fd(), "block", S_IFBLK | 0600, makedev(7, 0))); };
  EXPECT_EQ(in_child(agent_program(), block), EPERM);
  EXPECT_EQ(dir.mode("block"), 0U);
  EXPECT_EQ(
      in_child(agent_program(), [&] { return result(syscall(SYS_mknodat, dir.fd(), "fifo", S_IFIFO | 0600, 0)); }), 0);
  EXPECT_TRUE(S_ISFIFO(dir.mode("fifo")));
}

// Types one character into a terminal of the child's own. 0 when it can be read back from the terminal.
int push_input(uint64_t command) {
  setsid();
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return 201;
  std::array<char, 64> name{};
  if (ptsname_r(master, name.data(), name.size()) != 0) return 202;
  const int tty = open(name.data(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (tty < 0 || ioctl(tty, TIOCSCTTY, 0) != 0) return 203;
  const char newline = '\n';
  if (syscall(SYS_ioctl, tty, command, &newline) != 0) return errno;
  char got = 0;
  return read(tty, &got, 1) == 1 && got == newline ? 0 : 204;
}

TEST(SeccompGuest, NoInputIsPushedIntoATerminal) {
  for (const uint64_t command : {uint64_t{TIOCSTI}, TIOCSTI | kHigh, TIOCSTI | uint64_t{0xffffffff} << 32U}) {
    EXPECT_EQ(in_child(agent_program(), [&] { return push_input(command); }), EPERM);
    // EIO: dev.tty.legacy_tiocsti is 0 (Linux 6.2) and the caller lacks CAP_SYS_ADMIN.
    const int without = in_child({}, [&] { return push_input(command); });
    EXPECT_TRUE(without == 0 || without == EIO) << without;
    EXPECT_EQ(in_child(with_rule_replaced(SYS_ioctl, kPass), [&] { return push_input(command); }), without);
  }
}

TEST(SeccompGuest, UsualSocketsOpen) {
  struct Kind {
    int family, type, protocol;
  };
  for (const Kind kind :
       {Kind{AF_UNIX, SOCK_STREAM, 0}, Kind{AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0},
        Kind{AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0}, Kind{AF_INET, SOCK_STREAM, 6},
        Kind{AF_INET, SOCK_DGRAM, 0}, Kind{AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 17}, Kind{AF_INET6, SOCK_STREAM, 0},
        Kind{AF_INET6, SOCK_STREAM, 6}, Kind{AF_INET6, SOCK_DGRAM, 17}, Kind{AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0},
        Kind{AF_NETLINK, SOCK_DGRAM, 0}}) {
    EXPECT_EQ(in_child(agent_program(), [&] { return result(socket(kind.family, kind.type, kind.protocol)); }), 0)
        << kind.family << " " << kind.type << " " << kind.protocol;
  }
  EXPECT_EQ(in_child(agent_program(),
                     [] {
                       std::array<int, 2> pair{};
                       return result(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()));
                     }),
            0);
}

TEST(SeccompGuest, PersonalityAsDebuggersUseIt) {
  EXPECT_EQ(in_child(agent_program(),
                     [] {
                       if (personality(0xffffffff) != PER_LINUX) return 1;
                       if (personality(PER_LINUX | static_cast<unsigned>(ADDR_NO_RANDOMIZE)) != PER_LINUX) return 2;
                       return personality(0xffffffff) == static_cast<int>(ADDR_NO_RANDOMIZE) ? 0 : 3;
                     }),
            0);
}

int run_shell(const char* script) {
  std::array<char*, 4> arguments{const_cast<char*>("/bin/sh"), const_cast<char*>("-c"), const_cast<char*>(script),
                                 nullptr};
  execv("/bin/sh", arguments.data());
  return 126;
}

TEST(SeccompGuest, ShellsPipesAndThreadsWork) {
  EXPECT_EQ(in_child(agent_program(), [] { return run_shell("test \"$(printf 'b\\na\\n' | sort | head -n 1)\" = a"); }),
            0);
  // glibc starts a thread by clone3 and, on ENOSYS, by clone.
  EXPECT_EQ(in_child(agent_program(),
                     [] {
                       int value = 0;
                       std::thread([&] { value = 1; }).join();
                       return value == 1 ? 0 : 1;
                     }),
            0);
}

TEST(SeccompGuest, ToolsMaySandboxThemselvesFurther) {
  EXPECT_EQ(in_child(agent_program(), [] { return install_filter(agent_filter()); }), 0);
  EXPECT_EQ(in_child(agent_program(),
                     [] {
                       if (const int error = landlock_restrict({}, {.files = true}); error != 0) return error;
                       return result(open("/", O_RDONLY | O_CLOEXEC));
                     }),
            landlock_abi() < 2 ? EOPNOTSUPP : EACCES);
}

// The parent traces the child, sees it stop and reads its memory.
int trace_a_child() {
  static long secret = 42;
  const pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    secret = 43;
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) return 1;
  long copy = 0;
  const iovec here{&copy, sizeof(copy)};
  const iovec there{&secret, sizeof(secret)};
  const bool read_it = process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof(copy) && copy == 43;
  ptrace(PTRACE_CONT, pid, nullptr, nullptr);
  waitpid(pid, &status, 0);
  return read_it && WIFEXITED(status) ? 0 : 2;
}

TEST(SeccompGuest, DebuggersWork) {
  EXPECT_EQ(in_child(agent_program(), trace_a_child), 0);
}

TEST(SeccompGuest, NewerCallsThatToolchainsUseWork) {
  Scratch dir;
  const std::vector<std::pair<const char*, std::function<int()>>> calls = {
      {"memfd_create", [] { return result(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING)); }},
      {"pidfd_open", [] { return result(syscall(SYS_pidfd_open, getpid(), 0)); }},
      {"close_range", [] { return result(syscall(SYS_close_range, 900, 1000, 0)); }},
      {"renameat2",
       [&] {
         close(openat(dir.fd(), "a", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
         return result(syscall(SYS_renameat2, dir.fd(), "a", dir.fd(), "c", 1U));  // RENAME_NOREPLACE
       }},
      {"copy_file_range",
       [&] {
         const int from = openat(dir.fd(), "c", O_RDONLY | O_CLOEXEC);
         const int to = openat(dir.fd(), "d", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
         return result(copy_file_range(from, nullptr, to, nullptr, 1, 0));
       }},
      {"statx",
       [&] {
         struct statx info{};
         return result(statx(dir.fd(), "c", 0, STATX_BASIC_STATS, &info));
       }},
      {"io_setup",
       [] {
         aio_context_t context = 0;
         return result(syscall(SYS_io_setup, 1, &context));
       }},
      {"epoll_pwait2",
       [] {
         epoll_event event{};
         const timespec zero{};
         return result(syscall(SYS_epoll_pwait2, epoll_create1(EPOLL_CLOEXEC), &event, 1, &zero, nullptr, 0));
       }},
      {"membarrier", [] { return result(syscall(SYS_membarrier, 0, 0, 0)); }},
      {"name_to_handle_at",
       [&] {
         alignas(8) std::array<char, 256> handle{};
         const unsigned room = 128;
         memcpy(handle.data(), &room, sizeof(room));
         int mount = 0;
         return result(syscall(SYS_name_to_handle_at, dir.fd(), "c", handle.data(), &mount, 0));
       }},
  };
  for (const auto& [name, call] : calls) EXPECT_EQ(in_child(agent_program(), call), 0) << name;
  // Calls that this kernel may lack must answer as they do without the filter.
  const std::vector<std::pair<const char*, std::function<int()>>> may_lack = {
      {"futex_waitv", [] { return result(syscall(SYS_futex_waitv, nullptr, 0, 0, nullptr, 0)); }},
      {"cachestat", [] { return result(syscall(rules::kCachestat, -1, nullptr, nullptr, 0)); }},
      {"mseal", [] { return result(syscall(rules::kMseal, 0, 0, 99)); }},
      {"map_shadow_stack", [] { return result(syscall(rules::kMapShadowStack, 0, 0, 99)); }},
      {"futex_wake", [] { return result(syscall(rules::kFutexWake, nullptr, 0, 0, 99)); }},
      {"getxattrat", [] { return result(syscall(rules::kGetxattrat, -1, nullptr, 0, nullptr, nullptr, 0)); }},
      {"process_madvise", [] { return result(syscall(SYS_process_madvise, -1, nullptr, 0, 0, 0)); }},
      {"landlock", [] { return result(syscall(SYS_landlock_create_ruleset, nullptr, 0, 1U)); }},
  };
  for (const auto& [name, call] : may_lack) EXPECT_EQ(in_child(agent_program(), call), in_child({}, call)) << name;
}

}  // namespace
}  // namespace belljar::linux
