// Capabilities, limits and one-way switches, each in a forked child, each seen missing when not applied.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "linux/capabilities.h"
#include "linux/rlimits.h"
#include "linux/seal.h"

namespace belljar::linux {
namespace {

int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

// Root of a user namespace, with every capability there, whoever runs the test.
bool become_namespace_root() {
  return geteuid() == 0 || unshare(CLONE_NEWUSER) == 0;
}

// The value of `key` in /proc/self/status: what the kernel says on a way that the code under test does not use.
std::string status_field(const std::string& key) {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(key + ":\t")) return line.substr(key.size() + 2);
  }
  return {};
}

constexpr const char* kNone = "0000000000000000";

TEST(Capabilities, AreAllGone) {
  EXPECT_EQ(in_child([] {
              if (!become_namespace_root()) return 1;
              // Something in the two sets that are usually empty.
              __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
              __user_cap_data_struct words[2] = {};
              syscall(SYS_capget, &header, words);
              words[0].inheritable = words[0].permitted & (1U << CAP_KILL);
              if (syscall(SYS_capset, &header, words) != 0) return 2;
              if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0) != 0) return 3;
              CapabilitySets sets;
              if (read_capabilities(sets) != 0) return 4;
              const uint64_t kill_bit = uint64_t{1} << CAP_KILL;
              if (sets.effective == 0 || sets.permitted == 0 || sets.bounding == 0) return 5;
              if (sets.inheritable != kill_bit || sets.ambient != kill_bit) return 6;
              if (sets.empty()) return 7;
              if (drop_capabilities() != 0) return 8;
              if (read_capabilities(sets) != 0 || !sets.empty()) return 9;
              for (const char* key : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
                if (status_field(key) != kNone) return 10;
              }
              return drop_capabilities() == 0 ? 0 : 11;  // and again: nothing left is not an error
            }),
            0);
}

TEST(Capabilities, ReadBackAgreesWithProc) {
  CapabilitySets sets;
  ASSERT_EQ(read_capabilities(sets), 0);
  const auto spell = [](uint64_t set) {
    std::ostringstream out;
    out.width(16);
    out.fill('0');
    out << std::hex << set;
    return out.str();
  };
  EXPECT_EQ(status_field("CapEff"), spell(sets.effective));
  EXPECT_EQ(status_field("CapPrm"), spell(sets.permitted));
  EXPECT_EQ(status_field("CapInh"), spell(sets.inheritable));
  EXPECT_EQ(status_field("CapBnd"), spell(sets.bounding));
  EXPECT_EQ(status_field("CapAmb"), spell(sets.ambient));
}

TEST(Capabilities, EachSetCounts) {
  for (const CapabilitySets& sets :
       {CapabilitySets{.effective = 1}, CapabilitySets{.permitted = 1}, CapabilitySets{.inheritable = 1},
        CapabilitySets{.bounding = uint64_t{1} << 40U}, CapabilitySets{.ambient = 1}}) {
    EXPECT_FALSE(sets.empty());
  }
}

TEST(Capabilities, WithoutSetpcapTheBoundingSetIsAnError) {
  EXPECT_EQ(in_child([] {
              if (!become_namespace_root()) return 1;
              __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
              const __user_cap_data_struct none[2] = {};
              if (syscall(SYS_capset, &header, none) != 0) return 2;
              return drop_capabilities() == EPERM ? 0 : 3;
            }),
            0);
}

TEST(Limits, AreSetAndReadBack) {
  const std::array<ResourceLimit, 4> limits{ResourceLimit{RLIMIT_CORE, kNoCoreDump}, ResourceLimit{RLIMIT_NOFILE, 64},
                                            ResourceLimit{RLIMIT_FSIZE, 4096}, ResourceLimit{RLIMIT_NPROC, 100}};
  EXPECT_FALSE(limits_are(limits));
  EXPECT_EQ(in_child([&] {
              if (set_limits(limits) != 0 || !limits_are(limits)) return 1;
              rlimit files{};
              if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur != 64 || files.rlim_max != 64) return 2;
              if (dup2(0, 64) != -1 || errno != EBADF) return 3;
              return 0;
            }),
            0);
}

TEST(Limits, AboveTheHardLimitIsRefusedNotClamped) {
  EXPECT_EQ(in_child([] {
              if (set_limits(std::array{ResourceLimit{RLIMIT_FSIZE, 4096}}) != 0) return 1;
              if (geteuid() == 0 && drop_capabilities() != 0) return 2;
              if (set_limits(std::array{ResourceLimit{RLIMIT_FSIZE, 8192}}) != EPERM) return 3;
              return limits_are(std::array{ResourceLimit{RLIMIT_FSIZE, 4096}}) ? 0 : 4;
            }),
            0);
}

TEST(Limits, SoftBelowHardIsNotTheSame) {
  EXPECT_EQ(in_child([] {
              const rlimit uneven{32, 64};
              if (setrlimit(RLIMIT_NOFILE, &uneven) != 0) return 1;
              return limits_are(std::array{ResourceLimit{RLIMIT_NOFILE, 32}}) ||
                             limits_are(std::array{ResourceLimit{RLIMIT_NOFILE, 64}})
                         ? 2
                         : 0;
            }),
            0);
  EXPECT_EQ(set_limits(std::array{ResourceLimit{9999, 1}}), EINVAL);
}

TEST(Seal, NoNewPrivs) {
  EXPECT_EQ(in_child([] {
              if (status_field("NoNewPrivs") == "0" && has_no_new_privs()) return 1;
              if (set_no_new_privs() != 0 || !has_no_new_privs()) return 2;
              return status_field("NoNewPrivs") == "1" ? 0 : 3;
            }),
            0);
}

// A forked child tries to trace its parent, which is allowed for the same user unless the parent is not dumpable.
int traced_by_child(bool sealed) {
  if (geteuid() == 0 && drop_capabilities() != 0) return 200;
  if (sealed && set_not_dumpable() != 0) return 201;
  if (is_dumpable() == sealed) return 202;
  // With Yama (ptrace_scope 1) a child may not trace its parent unless the parent names it; where there is no Yama the
  // call is EINVAL and nothing needs to be named.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  const pid_t parent = getpid();
  const pid_t tracer = fork();
  if (tracer == 0) {
    if (ptrace(PTRACE_SEIZE, parent, nullptr, nullptr) != 0) _exit(errno);
    ptrace(PTRACE_DETACH, parent, nullptr, nullptr);
    _exit(0);
  }
  int status = 0;
  while (waitpid(tracer, &status, 0) == -1 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 203;
}

TEST(Seal, NotDumpableIsNotTraceable) {
  EXPECT_EQ(in_child([] { return traced_by_child(true); }), EPERM);
  EXPECT_EQ(in_child([] { return traced_by_child(false); }), 0);
}

TEST(Seal, ANewSessionKeyringIsAnother) {
  const auto session = [] { return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1); };
  EXPECT_EQ(in_child([&] {
              const long before = session();
              if (before == -1) return errno == ENOSYS && new_session_keyring() == ENOSYS ? 0 : 1;
              if (session() != before) return 2;
              if (new_session_keyring() != 0) return 3;
              return session() != before ? 0 : 4;
            }),
            0);
}

}  // namespace
}  // namespace belljar::linux
