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
// Where init finds the guest's 0, 1 and 2 when another program has executed it (Config::made_by_other).
inline constexpr int kStdioFd = 5;

// How many user namespaces there may be at a time inside a guest with nested = true, those within others included
// (namespaces(7), /proc/sys/user).
inline constexpr const char* kNestedNamespaces = "256";

// Where init finds its launcher when a container engine has started it: a folder of the session's, which it cannot
// write, with a listening SOCK_SEQPACKET socket. What comes over that is the same as in a jail.
inline constexpr const char* kMeetingFolder = "/run/belljar";
inline constexpr const char* kMeetingSocket = "/run/belljar/control";
// A folder that belongs to init and that Landlock must keep it out of.
inline constexpr const char* kMeetingParent = "/run";

// The launcher's first message in a container, with four descriptors: the encoded Config, and 0, 1 and 2.
struct ContainerOrder {
  uint32_t magic = 0;
};

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
  kStepHome = 1U << 8U,  // only told of: of a container, which cannot be without it
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
  kRedirect,
  kResolver,
  kLandlock,
  kLimits,
  kEntrusted,
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
  uint32_t nested = 0;              // 1: namespaces and mounts can be made inside; landlock bounds no files then
  std::array<char, 256> subject{};  // what the failed check looked at
  std::array<char, 64> expected{};
  std::array<char, 64> found{};
};

enum class GuestEvent : uint32_t { kProbed = 1, kSetupFailed, kStarted, kExecFailed, kStopped, kExited, kSocket };

struct GuestMessage {
  uint32_t magic = kMagic;
  GuestEvent event = GuestEvent::kProbed;
  int32_t value = 0;  // kExited: wait status; kExecFailed, kSetupFailed: errno; kStopped: signal;
                      // kSocket: 0 and the socket is attached, or errno
  uint32_t step = 0;  // kSetupFailed: the Step
  ProbeRecord probe;
};

enum class LauncherRequest : uint32_t { kGo = 1, kSignal, kSocket };

struct LauncherMessage {
  uint32_t magic = kMagic;
  LauncherRequest request = LauncherRequest::kGo;
  int32_t value = 0;  // kSignal: the signal for the main command's process group; kSocket: AF_INET or AF_INET6
};

}  // namespace belljar::guest
