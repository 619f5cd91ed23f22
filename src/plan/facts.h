// What the plan needs to know about the machine, the person and the folder: pure data, gathered by
// session/facts.h and made by hand in tests.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "policy/policy.h"

namespace belljar::plan {

// What the person asked for on this launch, beside the policy.
struct Request {
  std::vector<std::string> command;  // may be empty with an agent: the agent's own program
  std::string chdir{};               // where the command starts; empty means the work folder
  bool tty = false;
};

enum class FileKind : uint8_t {
  kAbsent,  // no such file, or a link that leads nowhere
  kFile,
  kFolder,
  kSocket,
  kFifo,
  kOther,  // a device
};

// What is no file and no folder.
[[nodiscard]] constexpr bool is_special(FileKind kind) {
  return kind == FileKind::kSocket || kind == FileKind::kFifo || kind == FileKind::kOther;
}

struct LinkFact {
  std::string path{};    // of the link itself; its folder is a real path
  std::string target{};  // its text
};

// A path, followed by hand. `links` are those met on the way, in order, also when the end is absent.
struct PathFact {
  FileKind kind = FileKind::kAbsent;
  std::string real{};  // the real path, or the one it would have when absent
  std::vector<LinkFact> links{};
  std::vector<std::string> left{};  // what a `..` on the way leads out of, also where nothing is
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0;              // permission bits
  bool idmap_possible = false;  // its file system can be mounted with an id map (mount_setattr(2)); only known to root
  bool shut = false;            // absent only as far as can be told: a folder on the way is closed to the launcher
};

// One entry of the host's root: /bin, /lib64, /opt.
struct RootEntry {
  enum class Kind : uint8_t { kAbsent, kFolder, kLink };
  Kind kind = Kind::kAbsent;
  std::string target{};  // of a link
};

// Who the person is for git; empty where their config does not say.
struct GitIdentity {
  std::string name{};
  std::string email{};
};

struct GitFact {
  enum class Kind : uint8_t {
    kNone,
    kFolder,
    kLink,        // `.git` is a symbolic link
    kWorktree,    // a file, and the folder it names points back at it: a linked worktree, or a submodule
    kUnverified,  // a file that names a folder which does not point back, for `reason`
  };
  Kind kind = Kind::kNone;
  PathFact common{};                   // a worktree's common folder, a submodule's folder, or what a link leads to
  PathFact own{};                      // a linked worktree's own folder in the common one; absent for a submodule
  std::vector<PathFact> shared{};      // in the common folder of a linked worktree, what a commit in it writes
  std::vector<PathFact> alternates{};  // folders of objects elsewhere that belong to the repository too
  std::string reason{};
  bool has_hooks = false;  // `.git` is a folder and has these
  bool has_config = false;
  bool has_links = false;  // hooks or config is a symbolic link
};

// A socket or a FIFO of the host's below a folder that the guest gets.
struct SpecialFile {
  std::string path{};  // real
  bool socket = false;
};

// A program, the interpreter its first line names, that one's interpreter, ….
struct ProgramFile {
  std::string path{};  // absolute, as found; executed under this name
  PathFact file{};
  PathFact venv{};        // the Python environment it is in, told by a pyvenv.cfg; absent when none
  std::string package{};  // the nearest folder above a script with a package.json, or empty
  std::string script{};   // real path of the script whose first line names it by an absolute path; else empty
};

struct ProgramFact {
  enum class State : uint8_t { kFound, kNotFound, kNotExecutable };
  State state = State::kNotFound;
  std::vector<ProgramFile> files;
  std::vector<std::string> missing;  // interpreters that were not found
};

// A run of ids of the launcher's user namespace (user_namespaces(7), /proc/self/uid_map).
struct IdRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

// The bubblewrap of the host, for the bwrap tier.
struct BwrapFact {
  std::string path{};     // absolute, empty when there is none
  std::string version{};  // "0.8.0"
  std::string fault{};    // why the tier cannot be built on it, with `remedy`; empty: it can
  std::string remedy{};
  bool follows_links = false;  // it makes mount points through links that appear while it sets up (CVE-2026-87766)
};

// Whether a group of the guest's own can be had with one controller.
struct CgroupFact {
  bool usable = false;
  std::string by{};     // by what means: "cgroup v1 in /sys/fs/cgroup/pids"
  std::string fault{};  // why not
};

// The container engine that a launch with Mode::kDocker would use, and the image.
struct EngineFact {
  std::string socket{};
  std::string image_id{};
  std::vector<std::string> image_env{};
  std::optional<base::Error> fault{};  // why there is none of it
};

struct Facts {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  bool root = false;  // effective uid 0
  pid_t launcher = 0;
  std::vector<IdRange> id_ranges;
  std::string home;  // normal path, as the person's environment or passwd says; empty when neither does
  std::map<std::string, std::string, std::less<>> environment;

  std::string work_folder;  // real path
  // `{folder}` in paths of the agent, where it keeps record of which is whose; empty: each that it could be is another
  // project's. None: folder_name() of the folder.
  std::optional<std::string> agent_folder;
  std::string file_system;  // its type, for messages

  std::map<std::string, RootEntry, std::less<>> root_entries;
  std::vector<std::string> etc_secrets;  // those that exist
  std::vector<std::string> devices;      // of /dev, those that exist
  PathFact resolver;                     // /etc/resolv.conf
  std::string resolver_text;             // its content when it is a link
  PathFact localtime;
  std::string passwd;  // text of the /etc files; empty when they are no regular files
  std::string group;
  std::string hosts;
  bool cpu_topology = false;  // /sys/devices/system/cpu

  GitFact git;
  GitIdentity git_identity;
  std::vector<PathFact> tool_links;            // where the links of kLinkFolder lead (plan/toolchains.h)
  std::vector<std::string> tool_secrets;       // files in the folders of toolchain_folders() that hold credentials
  std::vector<std::string> tools_unseen;       // those folders that are too large to look for such files in
  std::string cache_folder;                    // Belljar's own, a real path; it may not exist yet. Empty without a home
  std::vector<ProtectedPath> protected_paths;  // of the work folder, whatever the policy says of them
  std::vector<GitFolder> git_folders;          // those that the guest may write
  std::vector<std::string> watched;            // see Plan
  std::vector<std::string> held;               // folders with something in them that is obeyed where it is
  std::vector<std::string> unseen_folders;     // where there may be more
  std::map<std::string, std::string> awaited;  // of `watched`, what something outside leads to, and that
  std::vector<std::string> obeyed_whole;       // what leads to the work folder itself, or to a folder above
  std::vector<SpecialFile> special_files;      // in the work folder and in what the policy names
  ProgramFact program;
  std::map<std::string, PathFact, std::less<>> paths;  // by expanded path: what needed_paths() names
  std::vector<std::string>
      own_folders;  // Belljar's state, config, cache and runtime folders, real or not; its programs

  int landlock_abi = 0;  // 0: none
  uint64_t hard_open_files = 0;
  uint64_t hard_processes = 0;

  BwrapFact bwrap;  // only looked for with mode = "bwrap"

  CgroupFact memory_group;
  CgroupFact cpu_group;
  CgroupFact pids_group;
  EngineFact engine;          // only looked at with Mode::kDocker
  uint64_t memory_bytes = 0;  // of the machine
  uint64_t processors = 0;    // that the launcher may use
};

// Where `/etc` keeps what only root or a group may read. gather_facts() reports which exist; ssh host keys are found
// by name.
[[nodiscard]] const std::vector<std::string_view>& etc_secret_names();

// The entries of the host's root that a guest may get.
[[nodiscard]] const std::vector<std::string_view>& root_entry_names();

// The device nodes a guest gets, by name in /dev.
[[nodiscard]] const std::vector<std::string_view>& device_names();

// The command in effect: the request's, or the agent's own program.
[[nodiscard]] std::vector<std::string> command_of(const policy::Policy& policy, const Request& request);

// `text` of a policy as an absolute normal path: `~` and `~/x` from `home`, anything relative from `work_folder`.
// Refuses `~other`, an empty text, a NUL byte, and `~` without a home.
[[nodiscard]] base::Result<std::string> expand_path(std::string_view text, std::string_view home,
                                                    std::string_view work_folder);

// The folders of a PATH that count: absolute, normal, each once. Empty and relative entries mean the current folder,
// which an agent can write, and are left out.
[[nodiscard]] std::vector<std::string> path_folders(std::string_view path);

// Variables that name a file or folder of certificate authorities; passed when what they name is in the guest.
[[nodiscard]] const std::vector<std::string_view>& ca_variables();

// Every path whose fact make_plan() asks for, expanded. Refuses what expand_path() refuses.
[[nodiscard]] base::Result<std::vector<std::string>> needed_paths(const policy::Policy& policy, const Facts& facts,
                                                                  const Request& request);

}  // namespace belljar::plan
