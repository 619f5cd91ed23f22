#include "session/launcher_seal.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <thread>

#include "base/fd.h"
#include "base/temp_tree.h"
#include "linux/capabilities.h"
#include "linux/landlock_domain.h"
#include "linux/seccomp_filter.h"

namespace belljar::session {
namespace {

using ::testing::ElementsAre;

// What an attacker who has taken the launcher over would try. Each returns 0 when it was let, else the errno.
struct Attempt {
  const char* name;
  int (*make)();
};

int result_of(long value) {
  return value < 0 ? errno : 0;
}
int connect_to(uint16_t port) {
  const base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return 0;
  return errno == ECONNREFUSED ? 0 : errno;  // nobody listens, but it was let through
}
int start_process(uint64_t flags) {
  const long pid = ::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) ::_exit(0);
  if (pid > 0) ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return result_of(pid);
}
int signal_parent() {
  return result_of(::kill(::getppid(), 0));
}
int own_signal() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno;
  return result_of(::fcntl(ends[0], F_SETOWN, ::getppid()));
}
int push_input() {
  const char letter = 'x';
  // ENOTTY and the like come from the terminal, or from what is none: then the call was let through.
  return result_of(::ioctl(0, TIOCSTI, &letter)) == EPERM ? EPERM : 0;
}
int mount_something() {
  // Root is told that the folder is not there, others that they may not; only a filter says ENOSYS.
  return result_of(::mount("none", "/nonexistent", "tmpfs", 0, nullptr)) == ENOSYS ? ENOSYS : 0;
}
int look_by_stat() {
  struct stat found{};
  return result_of(::stat("/etc/passwd", &found));
}
int read_link() {
  std::array<char, 64> text{};
  return result_of(::readlink("/proc/self/exe", text.data(), text.size()));
}
int read_other_memory() {
  char byte = 0;
  iovec local{&byte, 1};
  iovec remote{&byte, 1};
  // As longs: of an int, syscall(2) takes what lies in the other half of the word too.
  return result_of(::syscall(SYS_process_vm_readv, ::getpid(), &local, 1UL, &remote, 1UL, 0UL));
}
int make_executable() {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return result_of(::mprotect(page, 4096, PROT_READ | PROT_EXEC));
}
int map_executable() {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? errno : 0;
}
int open_by_openat2() {
  open_how how{};
  how.flags = O_RDONLY;
  return result_of(::syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", &how, sizeof how));
}
int listen_somewhere() {
  const base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return result_of(::listen(fd.get(), 1));
}
int execute_nothing() {
  // A path that is not there: let through, it says ENOENT.
  std::array<char*, 1> none{nullptr};
  ::execve("/nonexistent/program", none.data(), none.data());
  return errno == ENOENT ? 0 : errno;
}
int trace_parent() {
  // Let through, it is refused or not by other rules; ESRCH tells that it was let through.
  const int code = result_of(::ptrace(PTRACE_SEIZE, 0x3fffff, nullptr, nullptr));
  return code == ESRCH ? 0 : code;
}
int steal_descriptor() {
  const base::Fd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  return self ? 0 : errno;
}

// A stream of a pair is connected for good; a datagram socket could be sent from to any other's.
int make_datagram_pair() {
  std::array<int, 2> pair{};
  return result_of(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair.data()));
}

const Attempt kAttempts[] = {
    {"read a file", [] { return result_of(::open("/etc/passwd", O_RDONLY | O_CLOEXEC)); }},
    {"name a file", [] { return result_of(::open("/", O_PATH | O_CLOEXEC)); }},
    {"read a file by openat2", open_by_openat2},
    {"look at a file", [] { return result_of(::access("/etc/passwd", F_OK)); }},
    {"look at a file by stat", look_by_stat},
    {"read a link", read_link},
    {"execute", execute_nothing},
    {"start a process", [] { return start_process(0); }},
    {"start a process in new namespaces", [] { return start_process(CLONE_NEWUSER | CLONE_NEWNET); }},
    {"leave for a new namespace", [] { return result_of(::unshare(CLONE_NEWUSER)); }},
    {"make a unix socket", [] { return result_of(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }},
    {"make a pair of datagram sockets", make_datagram_pair},
    {"make a netlink socket", [] { return result_of(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)); }},
    {"listen", listen_somewhere},
    {"trace", trace_parent},
    {"read another's memory", read_other_memory},
    {"take another's descriptor", steal_descriptor},
    {"signal", signal_parent},
    {"signal by a descriptor's owner", own_signal},
    {"type into a terminal", push_input},
    {"make memory executable", make_executable},
    {"map executable memory", map_executable},
    {"mount", mount_something},
    {"undo by prctl", [] { return result_of(::prctl(PR_SET_DUMPABLE, 1)); }},
    {"make a memory file", [] { return result_of(::memfd_create("x", MFD_CLOEXEC)); }},
};

// In a child: what is sealed stays so.
int in_child(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool seal_all() {
  return seal_thread({false, {53, 443}}) && seal_process();
}

constexpr int kNotSealed = 254;

class SealedTest : public ::testing::TestWithParam<Attempt> {};

TEST_P(SealedTest, IsRefused) {
  const int code = in_child([] { return seal_all() ? GetParam().make() : kNotSealed; });
  EXPECT_NE(code, 0);
  EXPECT_THAT(code, ::testing::AnyOf(EACCES, EPERM, ENOSYS)) << strerror(code);
}

// So that an attempt which could no longer succeed is noticed.
TEST_P(SealedTest, IsLetWithoutTheSeal) {
  const int code = in_child([] { return GetParam().make(); });
  EXPECT_EQ(code, 0) << strerror(code);
}

INSTANTIATE_TEST_SUITE_P(Launcher, SealedTest, ::testing::ValuesIn(kAttempts), [](const auto& parameter) {
  std::string name = parameter.param.name;
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) out += c;
  }
  return out;
});

TEST(Seal, ConnectsToThePortsOfTheRulesOnly) {
  if (linux::landlock_abi() < 4) return;
  EXPECT_EQ(in_child([] { return seal_all() ? connect_to(443) : kNotSealed; }), 0);
  EXPECT_EQ(in_child([] { return seal_all() ? connect_to(22) : kNotSealed; }), EACCES);
  EXPECT_EQ(in_child([] { return seal_thread({true, {53}}) && seal_process() ? connect_to(22) : kNotSealed; }), 0);
}

TEST(Seal, HoldsForEveryThread) {
  EXPECT_EQ(in_child([] {
              std::mutex lock;
              lock.lock();
              int mode = -1;
              bool sealed = false;
              linux::CapabilitySets sets;
              std::thread other([&] {
                sealed = seal_thread({false, {443}}).has_value();
                const std::lock_guard wait(lock);
                const int file = ::open("/etc/passwd", O_RDONLY | O_CLOEXEC);
                mode = file < 0 ? errno : 0;
                (void)linux::read_capabilities(sets);
              });
              while (!sealed) ::sched_yield();
              const bool good = seal_all();
              lock.unlock();
              other.join();
              return good && mode == EACCES && sets.effective == 0 && sets.permitted == 0 ? 0 : 1;
            }),
            0);
}

// Root's guest has ids of its own, but its user namespace is root's: that is enough to signal it (capabilities(7)).
TEST(Seal, LeavesWhatSupervisingNeeds) {
  EXPECT_EQ(in_child([] {
              const pid_t guest = ::fork();
              if (guest == 0) {
                for (;;) ::pause();
              }
              const base::Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, guest, 0)));
              int master = -1;
              int slave = -1;
              if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0 || !seal_all()) return kNotSealed;
              termios modes{};
              winsize size{};
              std::array<int, 2> ends{};
              if (::tcgetattr(slave, &modes) != 0 || ::tcsetattr(slave, TCSAFLUSH, &modes) != 0) return 1;
              if (::ioctl(slave, TIOCGWINSZ, &size) != 0 || ::ioctl(master, TIOCSWINSZ, &size) != 0) return 2;
              if (::pipe2(ends.data(), O_CLOEXEC) != 0 || ::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return 3;
              if (::write(ends[1], "x", 1) != 1) return 4;
              if (::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) != 0) return 5;
              if (::waitpid(guest, nullptr, 0) != guest) return 6;
              return connect_to(443) == 0 ? 0 : 7;
            }),
            0);
}

TEST(Seal, ClosesWhatTheCallerLeftOpen) {
  EXPECT_EQ(in_child([] {
              std::array<int, 2> ours{};
              if (::pipe2(ours.data(), O_CLOEXEC) != 0) return 1;
              const int inherited = ::fcntl(ours[0], F_DUPFD, 200);
              if (inherited < 0 || !close_inherited()) return 2;
              if (::fcntl(inherited, F_GETFD) >= 0) return 3;
              return ::fcntl(ours[0], F_GETFD) >= 0 && ::fcntl(2, F_GETFD) >= 0 ? 0 : 4;
            }),
            0);
}

TEST(Seal, KnowsThePortsOfTheRules) {
  policy::HostRule plain;
  policy::HostRule port;
  port.port = 5432;
  const std::vector<policy::HostRule> rules{plain, port, plain};
  EXPECT_THAT(dial_ports(rules).ports, ElementsAre(53, 80, 443, 5432));
  EXPECT_FALSE(dial_ports(rules).any);
  policy::HostRule any;
  any.any_port = true;
  EXPECT_TRUE(dial_ports({&any, 1}).any);
  EXPECT_THAT(dial_ports({}).ports, ElementsAre(53, 80, 443));
  policy::HostRule later;
  EXPECT_TRUE(covers(dial_ports(rules), later));
  later.port = 5432;
  EXPECT_TRUE(covers(dial_ports(rules), later));
  later.port = 22;
  EXPECT_FALSE(covers(dial_ports(rules), later));
  EXPECT_FALSE(covers(dial_ports(rules), any));
  EXPECT_TRUE(covers(dial_ports({&any, 1}), later));
  plan::Plan plan;
  plan.upstream = plan::Upstream{.host = "proxy.test", .port = 3128, .authorization = {}, .direct = {}};
  EXPECT_THAT(launcher_ports(plan).ports, ::testing::Contains(3128));
  EXPECT_FALSE(launcher_ports(plan).any);
  plan.ask = true;
  EXPECT_TRUE(launcher_ports(plan).any);
}

}  // namespace
}  // namespace belljar::session
