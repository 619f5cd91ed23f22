#include "linux/landlock_domain.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace belljar::linux {
namespace {

// include/uapi/linux/landlock.h as of Linux 6.15 (ABI 7); the header of Debian 12 ends at ABI 2.
struct RulesetAttr {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;  // ABI 4
  uint64_t scoped;              // ABI 6
};
struct [[gnu::packed]] PathBeneathAttr {
  uint64_t allowed_access;
  int32_t parent_fd;
};
static_assert(sizeof(PathBeneathAttr) == 12);
struct NetPortAttr {
  uint64_t allowed_access;
  uint64_t port;
};

constexpr uint32_t kCreateRulesetVersion = 1U << 0U;
constexpr int kRulePathBeneath = 1;
constexpr int kRuleNetPort = 2;

constexpr int kTcpAbi = 4;
constexpr uint64_t kBindTcp = 1U << 0U;     // ABI 4
constexpr uint64_t kConnectTcp = 1U << 1U;  // ABI 4

constexpr uint64_t kExecute = 1U << 0U;
constexpr uint64_t kWriteFile = 1U << 1U;
constexpr uint64_t kReadFile = 1U << 2U;
constexpr uint64_t kReadDir = 1U << 3U;
constexpr uint64_t kRemoveDir = 1U << 4U;
constexpr uint64_t kRemoveFile = 1U << 5U;
constexpr uint64_t kMakeChar = 1U << 6U;
constexpr uint64_t kMakeDir = 1U << 7U;
constexpr uint64_t kMakeReg = 1U << 8U;
constexpr uint64_t kMakeSock = 1U << 9U;
constexpr uint64_t kMakeFifo = 1U << 10U;
constexpr uint64_t kMakeBlock = 1U << 11U;
constexpr uint64_t kMakeSym = 1U << 12U;
constexpr uint64_t kRefer = 1U << 13U;     // ABI 2
constexpr uint64_t kTruncate = 1U << 14U;  // ABI 3
constexpr uint64_t kIoctlDev = 1U << 15U;  // ABI 5

constexpr uint64_t kScopeAbstractUnixSocket = 1U << 0U;  // ABI 6
constexpr uint64_t kScopeSignal = 1U << 1U;              // ABI 6

constexpr uint64_t kRead = kExecute | kReadFile | kReadDir;
// No kMakeChar, no kMakeBlock: a device node, an overlay whiteout included, is nobody's to make.
constexpr uint64_t kWrite =
    kWriteFile | kRemoveDir | kRemoveFile | kMakeDir | kMakeReg | kMakeSock | kMakeFifo | kMakeSym | kRefer | kTruncate;
constexpr uint64_t kDevice = kWriteFile | kTruncate | kIoctlDev;
constexpr uint64_t kAll = kRead | kWrite | kMakeChar | kMakeBlock | kIoctlDev;
// The rights a rule on something that is not a folder may hold; others are EINVAL (landlock_add_rule(2)).
constexpr uint64_t kOfFile = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev;

constexpr uint64_t handled_files(int abi) {
  uint64_t all = kAll;
  if (abi < 2) all &= ~kRefer;
  if (abi < 3) all &= ~kTruncate;
  if (abi < 5) all &= ~kIoctlDev;
  return all;
}

int add_rule(int ruleset, const LandlockRule& rule, uint64_t handled) {
  struct stat info{};
  if (fstat(rule.fd, &info) != 0) return errno;
  uint64_t access = kRead;
  if (rule.writable) access |= kWrite;
  if (rule.device) access |= kDevice;
  access &= handled;
  if (!S_ISDIR(info.st_mode)) access &= kOfFile;
  const PathBeneathAttr attr{access, rule.fd};
  return syscall(SYS_landlock_add_rule, ruleset, kRulePathBeneath, &attr, 0) == 0 ? 0 : errno;
}

int fill_and_enforce(int ruleset, std::span<const LandlockRule> rules, uint64_t handled,
                     std::span<const uint16_t> ports) {
  for (const uint16_t port : ports) {
    const NetPortAttr attr{kConnectTcp, port};
    if (syscall(SYS_landlock_add_rule, ruleset, kRuleNetPort, &attr, 0) != 0) return errno;
  }
  if (handled != 0) {
    for (const LandlockRule& rule : rules) {
      if (const int error = add_rule(ruleset, rule, handled); error != 0) return error;
    }
  }
  return syscall(SYS_landlock_restrict_self, ruleset, 0) == 0 ? 0 : errno;
}

}  // namespace

int landlock_abi() {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, kCreateRulesetVersion);
  return version > 0 ? static_cast<int>(version) : 0;
}

LandlockFeatures landlock_features(int abi) {
  return {.files = abi >= 2, .abstract_sockets = abi >= 6, .signals = abi >= 6};
}

int landlock_restrict(std::span<const LandlockRule> rules, LandlockFeatures features, std::span<const uint16_t> ports) {
  const int abi = landlock_abi();
  const LandlockFeatures offered = landlock_features(abi);
  if ((features.files && !offered.files) || (features.abstract_sockets && !offered.abstract_sockets) ||
      (features.signals && !offered.signals) || (features.tcp && abi < kTcpAbi) || (!features.tcp && !ports.empty())) {
    return EOPNOTSUPP;
  }
  RulesetAttr attr{};
  if (features.files) attr.handled_access_fs = handled_files(abi);
  if (features.abstract_sockets) attr.scoped |= kScopeAbstractUnixSocket;
  if (features.signals) attr.scoped |= kScopeSignal;
  if (features.tcp) attr.handled_access_net = kBindTcp | kConnectTcp;
  if (attr.handled_access_fs == 0 && attr.handled_access_net == 0 && attr.scoped == 0) return EOPNOTSUPP;
  // An older kernel takes the longer struct as long as the fields it does not know are zero (copy_struct_from_user).
  const long ruleset = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
  if (ruleset < 0) return errno;
  const int error = fill_and_enforce(static_cast<int>(ruleset), rules, attr.handled_access_fs, ports);
  close(static_cast<int>(ruleset));
  return error;
}

}  // namespace belljar::linux
