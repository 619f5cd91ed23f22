// A container, wholly described: what is asked of the engine, and what the engine must then say that it has made.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tiers/docker/engine.h"

namespace belljar::tiers::docker {

// A file or folder of the engine's host.
struct BindMount {
  std::string source;  // a real path
  std::string target;
  bool writable = false;
};

// Memory with an owner and two ceilings; nosuid and nodev always.
struct TmpfsMount {
  std::string target;
  uint64_t bytes = 0;
  uint64_t files = 0;
  mode_t mode = 0700;
  uid_t uid = 0;
  gid_t gid = 0;
  bool exec = true;
};

// A volume of the engine's own, whose content stays: nothing of the image is copied into it.
struct VolumeMount {
  std::string name;
  std::string target;
  bool writable = false;
  std::string source{};  // where the engine says that it has it (its Mountpoint); the resolved mount must lead there
  uint64_t bytes = 0;    // its ceilings, as a tmpfs, which the probe looks for
  uint64_t files = 0;
};

struct Ulimit {
  std::string name;  // as the engine calls it: "nofile"
  uint64_t soft = 0;
  uint64_t hard = 0;
};

enum class ContainerNetwork : uint8_t { kNone, kBridge };

// Everything else is the same for every container of Belljar's: no capability, no-new-privileges, the engine's builtin
// seccomp profile, runc, private pid, ipc, uts and cgroup namespaces, the engine's own user namespace
// as it is configured, no device, no port, no link, no restart, no health check, no log, no swap.
struct Profile {
  std::string name;
  std::string image_id;
  std::string hostname;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::string working_folder;
  std::vector<std::string> env;  // NAME=VALUE, all of it: also what the image brings
  Labels labels;                 // likewise
  ContainerNetwork network = ContainerNetwork::kNone;
  std::vector<BindMount> binds;
  std::vector<VolumeMount> volumes;
  std::vector<TmpfsMount> tmpfs;
  std::vector<Ulimit> ulimits;
  uint64_t memory_bytes = 0;  // swap is none beyond it
  uint64_t nano_cpus = 0;     // 0: not limited
  uint64_t pids = 0;
  uint64_t shm_bytes = 0;
  bool read_only_root = true;    // but for a container that becomes an image
  bool seccomp_by_name = false;  // `seccomp=builtin` is asked for: an engine that knows the word (API 1.42)
};

// Every value of an engine's answer that is compared, by where it stands there. A field without an entry in the table
// of validate_json.cc, and one without a mutation in tests/docker/mutation_test.cc, does not compile.
enum class Field : uint8_t {
  kName,
  kImage,
  kPath,
  kArguments,
  kRunning,
  kAppArmor,
  kProcessLabel,
  kPlatform,
  kResolvedMounts,
  kPorts,
  kNetworks,
  // Config
  kUser,
  kEntrypoint,
  kCommand,
  kHostname,
  kDomainname,
  kWorkingFolder,
  kEnvironment,
  kLabels,
  kTty,
  kOpenStdin,
  kExposedPorts,
  kVolumes,
  kHealthcheck,
  kNetworkDisabled,
  kMacAddress,
  kStopSignal,
  kStopTimeout,
  kOnBuild,
  kShell,
  kOtherConfig,
  // HostConfig
  kBinds,
  kMounts,
  kTmpfs,
  kNetworkMode,
  kPortBindings,
  kPublishAllPorts,
  kRestartPolicy,
  kAutoRemove,
  kVolumeDriver,
  kVolumesFrom,
  kCapAdd,
  kCapDrop,
  kCgroupNamespace,
  kIpcMode,
  kPidMode,
  kUtsMode,
  kUserNamespace,
  kCgroup,
  kCgroupParent,
  kDns,
  kDnsOptions,
  kDnsSearch,
  kExtraHosts,
  kGroupAdd,
  kLinks,
  kOomScore,
  kOomKillDisable,
  kPrivileged,
  kReadOnlyRoot,
  kSecurityOptions,
  kShmSize,
  kSysctls,
  kStorageOptions,
  kRuntime,
  kIsolation,
  kInit,
  kLog,
  kCpuShares,
  kNanoCpus,
  kCpuPeriod,
  kCpuQuota,
  kCpuRealtimePeriod,
  kCpuRealtimeRuntime,
  kCpusetCpus,
  kCpusetMems,
  kBlkioWeight,
  kBlkioWeightDevice,
  kBlkioReadBps,
  kBlkioWriteBps,
  kBlkioReadIops,
  kBlkioWriteIops,
  kDevices,
  kDeviceCgroupRules,
  kDeviceRequests,
  kMemory,
  kMemoryReservation,
  kMemorySwap,
  kMemorySwappiness,
  kKernelMemory,
  kKernelMemoryTcp,
  kPidsLimit,
  kUlimits,
  kMaskedPaths,
  kReadonlyPaths,
  kOtherHostConfig,
  kCount,
};

// Where the field stands in the answer: "HostConfig.Privileged".
[[nodiscard]] std::string field_name(Field field);

}  // namespace belljar::tiers::docker
