// What launcher and guest say to each other over one SOCK_SEQPACKET pair, and the configuration that init reads first.
// Both ends are built from one tree and started together, so there are no versions to negotiate: a message of another
// size or with another magic is refused. Once the agent runs nothing that comes from the guest is believed.
#pragma once

#include <array>
#include <cstdint>

namespace belljar::guest {

// Descriptors that init is started with; 0, 1 and 2 are the agent's.
inline constexpr int kControlFd = 3;
inline constexpr int kConfigFd = 4;  // the encoded Config, read once and closed
inline constexpr int kScratchFd =
    5;  // the root of the scratch tmpfs, which Landlock must keep init out of; then closed
inline constexpr int kFirstFreeFd = 6;

// What init does to itself before the probe. Production sets all of them; a test clears one and sees the probe refuse.
enum Step : uint32_t {
  kStepNotDumpable = 1U << 0U,
  kStepKeyring = 1U << 1U,
  kStepLimits = 1U << 2U,
  kStepNoNewPrivileges = 1U << 3U,
  kStepCapabilities = 1U << 4U,
  kStepLandlock = 1U << 5U,
  kStepSeccomp = 1U << 6U,
  kStepDescriptors = 1U << 7U,
  kEveryStep = (1U << 8U) - 1,
};

// The checks of the probe, in the order they run. Names in check_name().
enum class Check : uint32_t {
  kNone,
  kFirstProcess,
  kNamespaces,
  kIdentity,
  kHostRoot,
  kGroups,
  kCapabilities,
  kNoNewPrivileges,
  kSeccomp,
  kSetIdBits,
  kTerminalInjection,
  kNamespaceLimit,
  kNotDumpable,
  kParentDeathSignal,
  kDescriptors,
  kKeyring,
  kMounts,
  kProc,
  kScratch,
  kWorkFolder,
  kHostname,
  kInterfaces,
  kLoopback,
  kWayOut,
  kLandlock,
  kLimits,
  kCount,
};

[[nodiscard]] const char* check_name(Check check);

inline constexpr uint32_t kMagic = 0x6a6c6c62;  // "blj" and one

// The evidence of the probe: fixed in size, so that the launcher parses nothing.
struct ProbeRecord {
  uint32_t failed = 0;  // a Check, 0 when all passed
  int32_t code = 0;     // errno of the failed check, if any
  uint64_t passed = 0;  // bit per Check
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t groups = 0;  // supplementary groups that the kernel still counts
  uint32_t mounts = 0;  // entries of mountinfo
  uint32_t landlock_abi = 0;
  uint32_t seccomp_filters = 0;
  std::array<char, 256> subject{};  // what the failed check looked at
  std::array<char, 64> expected{};
  std::array<char, 64> found{};
};

enum class GuestEvent : uint32_t { kProbed = 1, kSetupFailed, kStarted, kExecFailed, kStopped, kExited };

struct GuestMessage {
  uint32_t magic = kMagic;
  GuestEvent event = GuestEvent::kProbed;
  int32_t value = 0;  // kExited: wait status; kExecFailed, kSetupFailed: errno; kStopped: signal
  uint32_t step = 0;  // kSetupFailed: the Step
  ProbeRecord probe;
};

enum class LauncherRequest : uint32_t { kGo = 1, kSignal };

struct LauncherMessage {
  uint32_t magic = kMagic;
  LauncherRequest request = LauncherRequest::kGo;
  int32_t value = 0;  // kSignal: the signal for the main command's process group
};

}  // namespace belljar::guest
