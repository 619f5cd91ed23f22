// The filter in force: each case forks, installs it and does the real call.
//
// Every refusal is run three times: under the agent's filter (the exact errno), under a filter whose rule for that call
// answers something else (which shows that this rule decides, whatever the kernel would say), and without a rule for it
// (which shows that the test notices when the rule is gone, wherever this kernel would let the caller through).
#include "linux/seccomp_filter.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "linux/capabilities.h"
#include "linux/filtered_child.h"
#include "linux/seccomp_rules.h"

namespace belljar::linux {
namespace {

using testing::agent_program;
using testing::in_child;
using testing::kKilled;
using testing::Program;
using testing::with_rule_replaced;

constexpr Answer kSentinel = 250;  // an errno value no kernel call answers

using Arguments = std::array<uint64_t, 6>;

int raw(uint32_t number, const Arguments& a) {
  return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) == -1 ? errno : 0;
}

uint64_t text(const char* value) {
  return reinterpret_cast<uint64_t>(value);
}
constexpr uint64_t kBad = ~uint64_t{0};  // no descriptor, no pointer, no valid set of flags

// Who may do it when no filter is there.
enum class Who : uint8_t {
  kAnyone,      // this kernel answers anyone something other than the filter's errno
  kHostRoot,    // only root of the initial user namespace with all capabilities
  kDependsOnIt  // a kernel may lack it, or answer the same errno itself
};

struct Refusal {
  const char* name;
  uint32_t number;
  Arguments arguments;  // harmless when the kernel does look at them
  int answer;
  Who who;
};

bool is_host_root() {
  CapabilitySets sets;
  // The sandboxes that tests run in drop a few; these are the ones the table's calls ask for.
  constexpr uint64_t kNeeded = uint64_t{1} << 16U | uint64_t{1} << 21U | uint64_t{1} << 22U;  // MODULE, ADMIN, BOOT
  return geteuid() == 0 && read_capabilities(sets) == 0 && (sets.effective & kNeeded) == kNeeded;
}

#define REFUSAL(call, answer, who, ...)                \
  Refusal {                                            \
    #call, SYS_##call, {__VA_ARGS__}, answer, Who::who \
  }

std::vector<Refusal> kernel_refusals() {
  return {
      REFUSAL(mount, EPERM, kAnyone, kBad, kBad, kBad, 0, 0),
      REFUSAL(umount2, EPERM, kAnyone, text("/nonexistent"), 0),
      REFUSAL(pivot_root, EPERM, kHostRoot, text("/nonexistent"), text("/nonexistent")),
      REFUSAL(chroot, EPERM, kAnyone, text("/nonexistent")),
      REFUSAL(open_tree, EPERM, kAnyone, kBad, text("/"), 0),
      REFUSAL(move_mount, EPERM, kHostRoot, kBad, text("x"), kBad, text("x"), 0),
      REFUSAL(fsopen, EPERM, kHostRoot, kBad, 0),
      REFUSAL(fsconfig, EPERM, kAnyone, kBad, 0, 0, 0, 0),
      REFUSAL(fsmount, EPERM, kHostRoot, kBad, 0, 0),
      REFUSAL(fspick, EPERM, kHostRoot, kBad, text("x"), 0),
      REFUSAL(mount_setattr, EPERM, kHostRoot, kBad, text("x"), 0, 0, 1),
      {"open_tree_attr", rules::kOpenTreeAttr, {kBad, text("x"), 0, 0, 0, 0}, EPERM, Who::kAnyone},
      REFUSAL(unshare, EPERM, kAnyone, 0),
      REFUSAL(setns, EPERM, kAnyone, kBad, 0),
      REFUSAL(keyctl, EPERM, kAnyone, 0, kBad - 2, 0),
      REFUSAL(add_key, EPERM, kAnyone, kBad, kBad, 0, 0, 0),
      REFUSAL(request_key, EPERM, kAnyone, kBad, kBad, 0, 0),
      REFUSAL(init_module, EPERM, kHostRoot, 0, 0, 0),
      REFUSAL(delete_module, EPERM, kHostRoot, kBad, 0),
      REFUSAL(finit_module, EPERM, kHostRoot, kBad, 0, 0),
      REFUSAL(kexec_load, EPERM, kDependsOnIt, 0, 0, 0, kBad),
      REFUSAL(kexec_file_load, EPERM, kDependsOnIt, kBad, kBad, 0, 0, kBad),
      REFUSAL(bpf, EPERM, kHostRoot, 9999, 0, 0),
      REFUSAL(perf_event_open, EPERM, kAnyone, kBad, 0, 0, kBad, 0),
      REFUSAL(userfaultfd, EPERM, kHostRoot, kBad),
  };
}

std::vector<Refusal> machine_refusals() {
  return {
      REFUSAL(syslog, EPERM, kHostRoot, 10, 0, 0),
      REFUSAL(vhangup, EPERM, kHostRoot, 0),
      REFUSAL(acct, EPERM, kHostRoot, text("/nonexistent")),
      REFUSAL(swapon, EPERM, kHostRoot, text("/nonexistent"), 0),
      REFUSAL(swapoff, EPERM, kHostRoot, text("/nonexistent")),
      REFUSAL(reboot, EPERM, kHostRoot, 0, 0, 0, 0),
      REFUSAL(sethostname, EPERM, kHostRoot, kBad, kBad),
      REFUSAL(setdomainname, EPERM, kHostRoot, kBad, kBad),
      REFUSAL(iopl, EPERM, kAnyone, 4),
      REFUSAL(ioperm, EPERM, kAnyone, kBad, 1, 0),
      REFUSAL(quotactl, EPERM, kAnyone, kBad, 0, 0, 0),
      REFUSAL(quotactl_fd, EPERM, kAnyone, kBad, kBad, 0, 0),
      REFUSAL(fanotify_init, EPERM, kHostRoot, kBad, 0),
      REFUSAL(fanotify_mark, EPERM, kAnyone, kBad, 0, 0, kBad, 0),
      REFUSAL(open_by_handle_at, EPERM, kHostRoot, kBad, kBad, 0),
      REFUSAL(adjtimex, EPERM, kAnyone, kBad),
      REFUSAL(settimeofday, EPERM, kAnyone, kBad, 0),
      REFUSAL(clock_settime, EPERM, kAnyone, 0, kBad),
      REFUSAL(clock_adjtime, EPERM, kAnyone, 0, kBad),
      REFUSAL(mbind, EPERM, kAnyone, 0, 0, 9999, 0, 0, 0),
      REFUSAL(set_mempolicy, EPERM, kAnyone, 9999, 0, 0),
      REFUSAL(get_mempolicy, EPERM, kAnyone, 0, 0, 0, 0, 0),
      REFUSAL(migrate_pages, EPERM, kAnyone, kBad, 0, kBad, kBad),
      REFUSAL(move_pages, EPERM, kAnyone, 0, 0, 0, 0, 0, kBad),
      REFUSAL(set_mempolicy_home_node, EPERM, kAnyone, 0, 0, 0, 1),
  };
}

std::vector<Refusal> unimplemented_refusals() {
  return {
      REFUSAL(io_uring_setup, ENOSYS, kAnyone, 1, kBad),
      REFUSAL(io_uring_enter, ENOSYS, kAnyone, kBad, 0, 0, 0, 0, 0),
      REFUSAL(io_uring_register, ENOSYS, kAnyone, kBad, 0, 0, 0),
      REFUSAL(clone3, ENOSYS, kAnyone, 0, 0),
      REFUSAL(openat2, ENOSYS, kAnyone, kBad, text("/"), 0, 0),
      REFUSAL(modify_ldt, ENOSYS, kDependsOnIt, 0, 0, 0),
      REFUSAL(kcmp, ENOSYS, kDependsOnIt, 1, 1, 99, 0, 0),
      REFUSAL(memfd_secret, ENOSYS, kDependsOnIt, kBad),
      REFUSAL(process_mrelease, ENOSYS, kAnyone, kBad, 1),
      REFUSAL(ustat, ENOSYS, kAnyone, 0, kBad),
      REFUSAL(sysfs, ENOSYS, kDependsOnIt, 3),
      REFUSAL(lookup_dcookie, ENOSYS, kDependsOnIt, 0, 0, 0),
      REFUSAL(uselib, ENOSYS, kDependsOnIt, text("/nonexistent")),
      {"statmount", rules::kStatmount, {0, 0, 0, kBad, 0, 0}, ENOSYS, Who::kDependsOnIt},
      {"listmount", rules::kListmount, {0, 0, 0, kBad, 0, 0}, ENOSYS, Who::kDependsOnIt},
      {"lsm_get_self_attr", rules::kLsmGetSelfAttr, {0, 0, 0, kBad, 0, 0}, ENOSYS, Who::kDependsOnIt},
      {"lsm_set_self_attr", rules::kLsmSetSelfAttr, {0, 0, 0, kBad, 0, 0}, ENOSYS, Who::kDependsOnIt},
      {"lsm_list_modules", rules::kLsmListModules, {0, 0, kBad, 0, 0, 0}, ENOSYS, Who::kDependsOnIt},
      {"file_getattr", rules::kFileGetattr, {kBad, 0, 0, 0, kBad, 0}, ENOSYS, Who::kDependsOnIt},
      {"file_setattr", rules::kFileSetattr, {kBad, 0, 0, 0, kBad, 0}, ENOSYS, Who::kDependsOnIt},
      {"listns", rules::kListns, {0, 0, 0, kBad, 0, 0}, ENOSYS, Who::kDependsOnIt},
  };
}

std::vector<Refusal> plain_refusals() {
  std::vector<Refusal> all = kernel_refusals();
  for (const auto& more : {machine_refusals(), unimplemented_refusals()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Refusals that hang on an argument. Each register is also given a high half that the kernel does not look at.
std::vector<Refusal> argument_refusals() {
  constexpr uint64_t kHigh = uint64_t{1} << 32U;
  return {
      // The kernel forks before it looks at a bad stack; CLONE_THREAD without CLONE_SIGHAND is EINVAL before that.
      REFUSAL(clone, EPERM, kAnyone, CLONE_NEWUSER | CLONE_THREAD),
      REFUSAL(clone, EPERM, kAnyone, CLONE_NEWNS | CLONE_THREAD | kHigh),
      REFUSAL(clone, EPERM, kAnyone, CLONE_NEWCGROUP | CLONE_THREAD),
      REFUSAL(clone, EPERM, kAnyone, CLONE_NEWUTS | CLONE_THREAD),
      REFUSAL(clone, EPERM, kAnyone, CLONE_NEWIPC | CLONE_THREAD),
      REFUSAL(clone, EPERM, kAnyone, CLONE_NEWPID | CLONE_THREAD),
      REFUSAL(clone, EPERM, kAnyone, CLONE_NEWNET | CLONE_THREAD | kHigh),
      REFUSAL(personality, EPERM, kAnyone, READ_IMPLIES_EXEC),
      REFUSAL(personality, EPERM, kAnyone, MMAP_PAGE_ZERO | kHigh),
      REFUSAL(ioctl, EPERM, kAnyone, kBad, TIOCSTI, 0),
      REFUSAL(ioctl, EPERM, kAnyone, kBad, TIOCSTI | kHigh, 0),
      REFUSAL(ioctl, EPERM, kAnyone, kBad, TIOCLINUX, 0),
      REFUSAL(ioctl, EPERM, kAnyone, kBad, TIOCLINUX | kHigh, 0),
      REFUSAL(ioctl, EPERM, kAnyone, kBad, TIOCSETD, 0),
      REFUSAL(ioctl, EPERM, kAnyone, kBad, TIOCSETD | kHigh, 0),
      REFUSAL(prlimit64, EPERM, kHostRoot, 1, 0, kBad, 0),
      REFUSAL(fcntl, EPERM, kAnyone, kBad, F_SETLEASE, F_RDLCK),
      REFUSAL(fcntl, EPERM, kAnyone, kBad, F_SETLEASE | kHigh, F_WRLCK),
      REFUSAL(fcntl, EPERM, kAnyone, kBad, rules::kSetDelegation, 0),
      REFUSAL(renameat2, EPERM, kAnyone, kBad, text("x"), kBad, text("x"), rules::kRenameWhiteout | kHigh),
      REFUSAL(socket, EAFNOSUPPORT, kDependsOnIt, AF_PACKET, SOCK_RAW, 0),
      REFUSAL(socket, EAFNOSUPPORT, kDependsOnIt, AF_PACKET | kHigh, SOCK_DGRAM, 0),
      REFUSAL(socket, EAFNOSUPPORT, kAnyone, AF_VSOCK, SOCK_STREAM, 0),
      REFUSAL(socket, EAFNOSUPPORT, kDependsOnIt, AF_ALG, SOCK_SEQPACKET, 0),
      REFUSAL(socket, EAFNOSUPPORT, kDependsOnIt, AF_BLUETOOTH, SOCK_RAW, 0),
      REFUSAL(socket, EAFNOSUPPORT, kDependsOnIt, AF_KEY, SOCK_RAW, 2),
      REFUSAL(socket, EAFNOSUPPORT, kDependsOnIt, AF_XDP, SOCK_RAW, 0),
      REFUSAL(socket, EAFNOSUPPORT, kAnyone, AF_NETLINK, SOCK_RAW, 15),         // NETLINK_KOBJECT_UEVENT
      REFUSAL(socket, EAFNOSUPPORT, kAnyone, AF_NETLINK | kHigh, SOCK_RAW, 4),  // NETLINK_SOCK_DIAG
      REFUSAL(socket, EPERM, kHostRoot, AF_INET, SOCK_RAW, 1),
      REFUSAL(socket, EPERM, kHostRoot, AF_INET | kHigh, SOCK_RAW | SOCK_CLOEXEC, 1),
      REFUSAL(socket, EPERM, kHostRoot, AF_INET6, SOCK_RAW, 58),
      REFUSAL(socket, EPERM, kDependsOnIt, AF_INET, SOCK_PACKET, 3),
      REFUSAL(socket, EPROTONOSUPPORT, kDependsOnIt, AF_INET, SOCK_STREAM, 132),  // SCTP
      REFUSAL(socket, EPROTONOSUPPORT, kDependsOnIt, AF_INET, SOCK_DGRAM, 136),   // UDP-Lite
      REFUSAL(socket, EPROTONOSUPPORT, kAnyone, AF_INET6, SOCK_SEQPACKET, 0),
      REFUSAL(socketpair, EAFNOSUPPORT, kAnyone, AF_INET, SOCK_STREAM, 0, 0),
  };
}

void expect_refused(const Refusal& refusal) {
  SCOPED_TRACE(refusal.name);
  const auto body = [&] {
    setsid();  // vhangup would reach the terminal of whoever runs the tests
    return raw(refusal.number, refusal.arguments);
  };
  EXPECT_EQ(in_child(agent_program(), body), refusal.answer);
  EXPECT_EQ(in_child(with_rule_replaced(refusal.number, kSentinel), body), kSentinel) << "another rule decides";
  const int without_filter = in_child({}, body);
  EXPECT_EQ(in_child(with_rule_replaced(refusal.number, kPass), body), without_filter);
  if (refusal.who == Who::kAnyone || (refusal.who == Who::kHostRoot && is_host_root())) {
    EXPECT_NE(without_filter, refusal.answer) << "the kernel refuses it as well: this case shows nothing";
  }
}

TEST(SeccompFilter, RefusesWhatAgentsNeverNeed) {
  for (const Refusal& refusal : plain_refusals()) expect_refused(refusal);
}

TEST(SeccompFilter, RefusesByArgument) {
  for (const Refusal& refusal : argument_refusals()) expect_refused(refusal);
}

TEST(SeccompFilter, EveryRefusedCallOfTheKernelIsTried) {
  std::vector<uint32_t> tried;
  for (const Refusal& refusal : plain_refusals()) tried.push_back(refusal.number);
  for (const Group& group : rules::kGroups) {
    if (group.otherwise == kPass || !group.cases.empty() || group.name == "dead") continue;
    for (const Call& call : group.calls) {
      // Only a 32-bit process has them.
      if (call.number == SYS_set_thread_area || call.number == SYS_get_thread_area) continue;
      EXPECT_NE(std::find(tried.begin(), tried.end(), call.number), tried.end()) << call.name;
    }
  }
}

TEST(SeccompFilter, AnswersEnosysToACallItDoesNotKnow) {
  FilterOptions options = rules::kOptions;
  options.unknown = kSentinel;
  const Program other = compile_filter(rules::kGroups, options);
  for (const uint32_t number : {400U, 480U, 1000U, 0x40000000U | uint32_t{SYS_getpid}, 0x7fffffffU}) {
    EXPECT_EQ(in_child(agent_program(), [&] { return raw(number, {}); }), ENOSYS) << number;
    EXPECT_EQ(in_child(other, [&] { return raw(number, {}); }), kSentinel) << number;
  }
}

// getpid (20) through the 32-bit gate: the other call table, where 20 is not writev.
int call_int80() {
  long result = 20;
  asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  return result < 0 ? static_cast<int>(-result) : 0;
}

TEST(SeccompFilter, AnswersEnosysThroughThe32BitGate) {
  FilterOptions options = rules::kOptions;
  options.foreign = kSentinel;
  // A kernel without IA32_EMULATION has no gate: the instruction faults, with any filter and without.
  const int without_filter = in_child({}, call_int80);
  if (without_filter == 0) {
    EXPECT_EQ(in_child(agent_program(), call_int80), ENOSYS);
    EXPECT_EQ(in_child(compile_filter(rules::kGroups, options), call_int80), kSentinel);
    options.foreign = kPass;
    EXPECT_EQ(in_child(compile_filter(rules::kGroups, options), call_int80), 0);
  } else {
    EXPECT_EQ(without_filter, kKilled + SIGSEGV);
  }
}

TEST(SeccompFilter, NeedsNoNewPrivs) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (drop_capabilities() != 0 && geteuid() == 0) _exit(1);
    _exit(install_filter(agent_filter()) == EACCES && seccomp_mode() == 0 ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST(SeccompFilter, RefusesABadProgram) {
  EXPECT_EQ(install_filter({}), EINVAL);
  const std::array<sock_filter, 1> no_return{sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}};
  EXPECT_EQ(in_child({}, [&] { return install_filter(no_return); }), EINVAL);
}

TEST(SeccompFilter, ModeIsReadBack) {
  EXPECT_EQ(in_child({}, [] { return seccomp_mode(); }), in_child({}, [] { return prctl(PR_GET_SECCOMP); }));
  EXPECT_EQ(in_child(agent_program(), [] { return seccomp_mode(); }), SECCOMP_MODE_FILTER);
}

}  // namespace
}  // namespace belljar::linux
