// What this machine answers when asked and tried: raw findings, no opinion. host_facts.h judges them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linux/bubblewrap.h"

namespace belljar::linux {

// The outcome of doing a thing for real in a child that then goes away with all it made.
struct Trial {
  int error = 0;     // errno of the step that failed; 0: everything worked
  std::string step;  // that step, as one would look it up: "unshare CLONE_NEWUSER", "write uid_map"

  [[nodiscard]] bool worked() const { return error == 0; }
};

// A cgroup controller and whether a group for a guest can be made below the own group.
struct CgroupController {
  std::string name;    // "memory"
  int version = 0;     // 1 or 2; 0: in no hierarchy that is mounted here
  std::string folder;  // of the own group
  int error = 0;       // errno of making a group there
  std::string fault;   // why none can be made, known without trying
};

struct HostEvidence {
  std::string kernel;      // uname -r
  std::string machine;     // uname -m
  uid_t uid = 0;           // effective
  std::string folder;      // the current one, whose filesystem the id-map trial was made on; empty: it is gone
  uid_t folder_uid = 0;    // its owner
  std::string program;     // path of the running program
  bool container = false;  // a marker of a container engine is there
  bool chroot = false;     // where the kernel refuses user namespaces (user_namespaces(7)); may stay unseen
  int seccomp_mode = 0;    // of this process: 2 when an outer filter is in force

  // Sysctls; no value where the kernel has no such file.
  std::optional<uint64_t> unprivileged_userns_clone;              // kernel.*, Debian's patch
  std::optional<uint64_t> max_user_namespaces;                    // user.*
  std::optional<uint64_t> apparmor_restrict_unprivileged_userns;  // kernel.*, AppArmor 4 (Ubuntu 23.10)

  // As root without a user namespace, the way the jail starts there; as anyone else in a new one.
  Trial user_namespace;
  Trial namespaces;            // pid, net, ipc, uts, cgroup
  Trial mounts;                // a tmpfs by the new mount API, attached
  Trial proc;                  // a new proc in a new pid namespace
  Trial overlay;               // an overlay of two tmpfs folders
  Trial redirect;              // of a network namespace's own connections, by nf_tables
  std::optional<Trial> idmap;  // an id-mapped bind of `folder`; only tried as root
  Trial seccomp;               // the agent's filter installed

  int landlock_abi = 0;
  int landlock_error = 0;  // ENOSYS: not built; EOPNOTSUPP: built, not enabled at boot

  std::vector<CgroupController> cgroups;  // memory, cpu, pids
  uint64_t open_files = 0;                // the hard RLIMIT_NOFILE

  Bubblewrap bwrap;
  std::string bwrap_said;     // what it said when it was to make the tier's namespaces; empty: it made them
  std::string docker;         // its path
  std::string docker_socket;  // where the engine is asked
  int docker_error = 0;       // errno of connecting there
};

// Looks and tries. Changes nothing that outlives it: trials run in forked children in namespaces of their own, and a
// trial cgroup is removed again. `path` and `docker_host` are PATH and DOCKER_HOST of whoever asks;
// empty means not set. Call it while the process has one thread.
[[nodiscard]] HostEvidence gather_evidence(const std::string& path, const std::string& docker_host);

}  // namespace belljar::linux
