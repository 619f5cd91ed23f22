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
  kOther,  // socket, FIFO or device
};

struct LinkFact {
  std::string path{};    // of the link itself; its folder is a real path
  std::string target{};  // its text
};

// A path, followed by hand. `links` are those met on the way, in order, also when the end is absent.
struct PathFact {
  FileKind kind = FileKind::kAbsent;
  std::string real{};  // the real path, or the one it would have when absent
  std::vector<LinkFact> links{};
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0;              // permission bits
  bool idmap_possible = false;  // its file system can be mounted with an id map (mount_setattr(2)); only known to root
};

// One entry of the host's root: /bin, /lib64, /opt.
struct RootEntry {
  enum class Kind : uint8_t { kAbsent, kFolder, kLink };
  Kind kind = Kind::kAbsent;
  std::string target{};  // of a link
};

struct GitFact {
  enum class Kind : uint8_t {
    kNone,
    kFolder,
    kLink,        // `.git` is a symbolic link
    kWorktree,    // a file, and the folder it names points back at it
    kUnverified,  // a file that names a folder which does not point back, for `reason`
  };
  Kind kind = Kind::kNone;
  PathFact common{};  // a worktree's common folder, or what a link leads to
  std::string reason{};
  bool has_hooks = false;  // `.git` is a folder and has these
  bool has_config = false;
  bool has_links = false;  // hooks or config is a symbolic link
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
  ProgramFact program;
  std::map<std::string, PathFact, std::less<>> paths;  // by expanded path: what needed_paths() names
  std::vector<std::string> own_folders;  // Belljar's state, config, cache and runtime folders, real or not

  int landlock_abi = 0;  // 0: none
  uint64_t hard_open_files = 0;
  uint64_t hard_processes = 0;
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
