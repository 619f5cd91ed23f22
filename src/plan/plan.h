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
  kCopy,      // a copy of the file `source` of the host, in a folder of the guest's own
  kDevice,    // one device node of the host
  kProc,      // a new proc of the guest's pid namespace
  kPts,       // a new devpts
  kMask,      // nothing: an empty read-only file or folder in place of what is there, if anything
  kReadOnly,  // what the guest already has at `target`, made read-only: /proc/sys of its own proc
  kPrivate,   // a copy of the folder the guest has at `target`, made as it is written to and gone at the end
};

struct Mount {
  MountKind kind = MountKind::kBind;
  std::string target{};  // absolute path in the guest
  std::string source{};  // by kind
  bool writable = false;
  bool idmap = false;     // a bind of the person's own files: attached through the id map when the identity has one
  bool optional = false;  // a source or target that is missing when the launch starts is left out (masks of /proc)
  bool link = false;      // kReadOnly: the target is a symbolic link, pinned itself
  std::string reason{};   // why it is there, for a person
};

// A file by which an agent knows whose its folder is.
struct FolderMarker {
  std::string path;  // absolute, of the host
  std::string text;
};

// A path in a tree the guest may write that programs of the host obey, as it was when the launch began.
struct ProtectedPath {
  enum class Kind : uint8_t { kFolder, kFile, kLink, kOther };
  enum class Treatment : uint8_t { kReadOnly, kPrivate, kMask };
  std::string path{};  // absolute
  Kind kind = Kind::kFile;
  Treatment treatment = Treatment::kReadOnly;
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t born = 0;        // nanoseconds since 1970, where the file system keeps that
  bool repository = false;  // a git folder or file, whatever it is called
  bool shut = false;        // a folder whose mode keeps its owner out
  std::string reason{};     // why it is protected, for a person
};

// A git folder that the guest may write, and what in it git obeys all the same; or a folder of one, such as refs, in
// which no name counts. Links, sockets and FIFOs count in both: git of the host writes through them.
struct GitFolder {
  bool whole = true;
  bool tree = false;   // a tree of the guest's itself: what in it is not git's is the person's
  std::string path{};  // absolute
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t born = 0;
  std::vector<ProtectedPath> obeyed{};  // read-only; what is new at the end is quarantined
  std::string config{};                 // text of its `config`, should that have to be put back
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

enum class KeptKind : uint8_t {
  kLogin,      // a file that the host takes back as it is
  kState,      // a JSON file of which the host takes back some keys
  kHistory,    // a file or folder that the host did not have, and takes when the guest made one
  kForbidden,  // a path in the history on which the guest must not leave anything
};

// What of the guest's private home outlives the session, and where.
struct Kept {
  KeptKind kind = KeptKind::kLogin;
  std::string path;               // on the host: a real path, or the one it would have
  std::string inside;             // in the guest, below `private_home`
  std::vector<std::string> keys;  // kState
};

struct ResourceLimits {
  std::optional<uint64_t> memory_bytes;  // these three by a cgroup; absent: not limited
  std::optional<uint64_t> cpu_percent;   // 100 is one core
  std::optional<uint64_t> pids;          // processes and threads
  uint64_t processes = 0;
  uint64_t open_files = 0;
  std::optional<uint64_t> file_bytes;
  uint64_t scratch_bytes = 0;
  uint64_t scratch_files = 0;
  std::optional<uint64_t> wall_seconds;
  // By what means memory, cpu and pids are limited: "cgroup v2 in /sys/fs/cgroup", or why they are not.
  std::string memory_by;
  std::string cpu_by;
  std::string pids_by;
};

// With Mode::kDocker: where the container is made, and of what. The rest of the plan says what it may.
struct Container {
  std::string engine;                  // path of the engine's socket
  std::string image;                   // as the policy names it
  std::string image_id;                // what that was when the plan was made: "sha256:…"
  std::vector<std::string> image_env;  // of the image, each NAME=VALUE: a container has what it does not set itself
};

// The HTTP proxy by which the launcher itself reaches the net.
struct Upstream {
  std::string host;  // canonical
  uint16_t port = 0;
  std::string authorization;        // value of Proxy-Authorization; secret: never printed, never inside
  std::vector<std::string> direct;  // hosts that are reached without it: names with their subdomains, addresses, `*`
};

struct Plan {
  policy::Mode mode = policy::Mode::kJail;
  policy::Network network = policy::Network::kDeny;
  policy::Clipboard clipboard = policy::Clipboard::kDeny;
  std::string work_folder;  // real path; writable; where the command starts unless chdir says otherwise
  std::string chdir;
  std::string home;
  std::string agent;                 // name of the preset, or empty
  std::vector<std::string> command;  // as executed, extra arguments included
  std::string program;               // absolute path of command[0] in the guest
  Identity identity;
  std::vector<Mount> mounts;                   // in the order they are made
  std::vector<ProtectedPath> protected_paths;  // in the work folder; those that are new at the end are quarantined
  std::vector<std::string> writable;           // trees where the agent may write; the rest is read-only
  std::string private_home;                    // target of the scratch folder that is the guest's home
  std::vector<Kept> kept;                      // what is done with it at the end
  std::optional<FolderMarker> folder_marker;   // made before the guest is
  std::vector<GitFolder> git_folders;
  std::vector<std::string> watched;    // absolute: what a protected link leads to, where nothing is yet
  std::vector<std::string> swept;      // trees beside the work folder that are looked through like it at the end
  std::vector<std::string> histories;  // folders of the agent's history on the host, which the guest writes
  std::vector<std::string> approved;   // patterns: protected paths that the guest may make and change
  std::vector<std::string> caches;     // folders of Belljar's cache, to be made before the launch
  std::vector<EnvVar> env;
  ResourceLimits limits;
  std::vector<policy::HostRule> hosts;
  std::vector<policy::ExposedPort> expose;  // only with Network::kDeny
  bool nested = false;
  policy::Hook hook;
  policy::Audit audit;                                           // its file as a path that the launcher can open
  policy::Transparent transparent = policy::Transparent::kAuto;  // as asked: a launch finds out what this host can do
  uint16_t proxy_port = 0;                                       // on the guest's loopback; 0 with Network::kAllow
  bool ask = false;                                              // what no rule decides about is asked at the terminal
  uint64_t ask_seconds = 0;
  std::optional<Upstream> upstream;  // only with Network::kDeny
  std::string hostname;
  Container container;
  std::string bwrap;                    // path of bubblewrap, with Mode::kBwrap
  std::vector<std::string> weakenings;  // named, and shown in the badge
  std::vector<std::string> notes;       // what a person should know: left out, not found
};

}  // namespace belljar::plan
