// A launch, fully resolved: every mount, variable, rule and limit. Pure data; can be printed, compared and replayed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace belljar::plan {

enum class MountKind : uint8_t {
  kBind,      // `source` of the host, with everything mounted below it
  kScratch,   // a folder of the guest's one bounded tmpfs, empty
  kFolder,    // a plain folder of the read-only root
  kLink,      // a symbolic link to `source`
  kFile,      // a regular file with the text `source`, read-only
  kDevice,    // one device node of the host
  kProc,      // a new proc of the guest's pid namespace
  kPts,       // a new devpts
  kMask,      // nothing: an empty read-only file or folder in place of what is there, if anything
  kReadOnly,  // what the guest already has at `target`, made read-only: /proc/sys of its own proc
};

struct Mount {
  MountKind kind = MountKind::kBind;
  std::string target{};  // absolute path in the guest
  std::string source{};  // by kind
  bool writable = false;
  bool idmap = false;     // a bind of the person's own files: attached through the id map when the identity has one
  bool optional = false;  // a source or target that is missing when the launch starts is left out (masks of /proc)
  std::string reason{};   // why it is there, for a person
};

// Who the guest is. When `idmap` is set the guest's host id owns nothing on disk, and the binds under
// `disk_uid` are attached through an id-mapped mount (Linux 5.12).
struct Identity {
  uid_t guest_uid = 0;  // what the agent sees
  gid_t guest_gid = 0;
  uid_t host_uid = 0;  // what the kernel sees outside; never 0
  gid_t host_gid = 0;
  bool idmap = false;
  uid_t disk_uid = 0;  // owner of the work folder, and so of what the agent writes
  gid_t disk_gid = 0;
};

struct EnvVar {
  std::string name;
  std::string value;
  bool secret = false;  // shown as *** in the plan
};

struct ResourceLimits {
  uint64_t processes = 0;
  uint64_t open_files = 0;
  std::optional<uint64_t> file_bytes;
  uint64_t scratch_bytes = 0;
  uint64_t scratch_files = 0;
  std::optional<uint64_t> wall_seconds;
};

struct Plan {
  policy::Mode mode = policy::Mode::kJail;
  policy::Network network = policy::Network::kDeny;
  std::string work_folder;  // real path; writable; where the command starts unless chdir says otherwise
  std::string chdir;
  std::string home;
  std::string agent;                 // name of the preset, or empty
  std::vector<std::string> command;  // as executed, extra arguments included
  std::string program;               // absolute path of command[0] in the guest
  Identity identity;
  std::vector<Mount> mounts;          // in the order they are made
  std::vector<std::string> writable;  // trees where the agent may write; the rest is read-only
  std::vector<EnvVar> env;
  ResourceLimits limits;
  std::vector<policy::HostRule> hosts;
  uint16_t proxy_port = 0;  // on the guest's loopback; 0 with Network::kAllow
  std::string hostname;
  std::vector<std::string> weakenings;  // named, and shown in the badge
  std::vector<std::string> notes;       // what a person should know: left out, not found
};

}  // namespace belljar::plan
