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
  bool device = false;        // one device node: nodev does not apply
  bool below = false;         // further mounts may lie below it (a recursive bind)
  bool optional = false;      // may be missing: what it hides is not there
  bool private_copy = false;  // an overlay; where the kernel makes none, read-only
  uint64_t lies_on = 0;       // device and inode of the file or folder that must lie there; inode 0: any
  uint64_t inode = 0;
  bool plain = false;  // in a container: an engine makes no nosuid or nodev mount of a folder of its host
  bool tmpfs = false;  // it must be one, nosuid and nodev unless plain,
  uint64_t bytes = 0;  // with these ceilings; 0: not looked at
  uint64_t files = 0;
};

// A file that the guest must have at `path`, or must not.
struct ExpectedFile {
  std::string_view path;
  bool absent = false;  // nothing of that name is there
  uint64_t device = 0;  // of the very file that must lie there, which nobody inside can write; inode 0: any
  uint64_t inode = 0;
  std::string_view holds{};  // a text that must occur in it; empty: it is not read
};

// In a container: what init puts into the guest's home, which is a tmpfs of its own.
struct HomeEntry {
  std::string_view path;     // absolute
  std::string_view content;  // of the file, or where the link leads
  bool link = false;
};

// Sizes in bytes, ids as the guest sees them. The strings belong to whoever made the Config.
struct Config {
  uint32_t steps = kEveryStep;
  bool terminal = false;         // an own pty is the agent's 0 and 1
  bool terminal_stderr = false;  // and its 2
  bool isolated_network = false;
  bool nested = false;  // sandboxes can be made inside
  uint16_t proxy_port = 0;
  bool transparent = false;     // synthetic addresses are led to the way out, and a resolver answers
  bool transparent_v6 = false;  // also those of IPv6
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
  // Another program has made the guest and executed init, and did less than the jail's child: init is given 0, 1 and 2
  // of the guest at kStdioFd, makes the way out's listener and hands it out, and opens what lies in `scratch` and hands
  // that out. The id map is one of several, and the launcher checks what it amounts to.
  bool made_by_other = false;
  std::string_view canary;  // made_by_other: a folder that only Landlock keeps init from writing to, or empty
  std::vector<std::string_view> scratch;  // made_by_other
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
  bool container = false;  // an engine's: its namespaces and filter are around init's own
  std::string_view home;   // in a container: the root of the home's tmpfs
  std::vector<HomeEntry> home_entries;
  std::vector<ExpectedFile> files;
  // The container is a task's: its work folder is a volume, and this one a volume of its own that does not alias it.
  std::string_view metadata;
  std::vector<std::string_view> engine_environment;  // what init itself must have been started with; empty: anything
};

inline constexpr std::array<const char*, 7> kNamespaceNames = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};

[[nodiscard]] std::string encode(const Config& config);

// The views point into `bytes`, in which every string ends with a NUL. False when `bytes` is not what encode() made.
[[nodiscard]] bool decode(std::string_view bytes, Config& config);

}  // namespace belljar::guest
