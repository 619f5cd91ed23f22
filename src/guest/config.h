// What init is told: the command, and what the probe has to find.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "guest/protocol.h"

namespace belljar::guest {

// One mount point the guest must have, and how. Mounts below a bind (the host had something mounted there) must be at
// least as strict as the bind.
struct ExpectedMount {
  std::string_view path;
  bool writable = false;
  bool device = false;    // one device node: nodev does not apply
  bool below = false;     // further mounts may lie below it (a recursive bind)
  bool optional = false;  // may be missing: what it hides is not there
};

// Sizes in bytes, ids as the guest sees them. The strings belong to whoever made the Config.
struct Config {
  uint32_t steps = kEveryStep;
  bool terminal = false;         // an own pty is the agent's 0 and 1
  bool terminal_stderr = false;  // and its 2
  bool isolated_network = false;
  uint16_t proxy_port = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t landlock_abi = 0;  // of the kernel, as the launcher read it; 0 without Landlock
  uint64_t processes = 0;     // 0: not limited
  uint64_t open_files = 0;
  uint64_t file_bytes = 0;  // 0: not limited
  uint64_t scratch_bytes = 0;
  uint64_t scratch_files = 0;
  uint64_t work_device = 0;
  uint64_t work_inode = 0;
  uint32_t umask = 022;
  uint32_t closed = 0;                    // bit n: descriptor n of 0, 1, 2 is closed, as the caller's was
  bool launched_by_root = false;          // so no supplementary group is left and the work folder must be the guest's
  int64_t host_keyring = 0;               // serial of the launcher's session keyring; 0 where the kernel has no keys
  std::vector<uint64_t> host_namespaces;  // inode of each of kNamespaceNames in the launcher; 0 where it is shared
  std::string_view hostname;
  std::string_view work_folder;
  std::string_view chdir;
  std::string_view program;
  std::vector<std::string_view> arguments;
  std::vector<std::string_view> environment;
  std::vector<std::string_view> writable;  // trees that Landlock leaves writable
  std::vector<ExpectedMount> mounts;
};

inline constexpr std::array<const char*, 7> kNamespaceNames = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};

[[nodiscard]] std::string encode(const Config& config);

// The views point into `bytes`, in which every string ends with a NUL. False when `bytes` is not what encode() made.
[[nodiscard]] bool decode(std::string_view bytes, Config& config);

}  // namespace belljar::guest
