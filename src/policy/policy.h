// What one launch may read, write, reach, use and for how long. A value: built once, then only read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace belljar::policy {

enum class Mode : uint8_t { kNone, kJail, kBwrap, kDocker };
enum class Network : uint8_t { kAllow, kDeny };
enum class GitAccess : uint8_t { kRead, kWrite };
enum class Home : uint8_t {
  kAgent,  // the guest's private home holds the agent's own paths
  kEmpty,  // it holds nothing: a Policy with this has no config_dirs and config_files in its agent
};

// A host the guest may reach. `pattern` is canonical (lower case, A-labels, no trailing dot): `example.com` matches
// itself, `*.example.com` its subdomains and not itself, an address literal itself. No ports means 80 and 443.
struct HostRule {
  std::string pattern;
  std::optional<uint16_t> port;  // from `host:5432`
  bool any_port = false;         // from `host:*`
  std::string source;            // where the rule came from: "preset claude", "flag", "FILE:12:3"

  bool operator==(const HostRule& other) const {
    return pattern == other.pattern && port == other.port && any_port == other.any_port;
  }
};

struct Isolation {
  Mode mode = Mode::kJail;
  Network network = Network::kDeny;
  std::string docker_image;           // only with Mode::kDocker
  std::vector<HostRule> allow_hosts;  // beyond what the agent preset allows

  bool operator==(const Isolation&) const = default;
};

// Paths are absolute and normal, or start with `~/` (the home of the person who launches) or are `.`-relative to the
// work folder as written; the plan resolves them.
struct Files {
  std::vector<std::string> read;
  std::vector<std::string> write;
  std::vector<std::string> hide;
  Home home = Home::kAgent;

  bool operator==(const Files&) const = default;
};

// Every limit is optional: absent means the tier's default, which only names what every host can enforce.
struct Limits {
  std::optional<uint64_t> memory_bytes;   // needs a cgroup
  std::optional<uint64_t> cpu_percent;    // 100 is one core; needs a cgroup
  std::optional<uint64_t> pids;           // needs a cgroup
  std::optional<uint64_t> processes;      // RLIMIT_NPROC, per user namespace
  std::optional<uint64_t> scratch_bytes;  // home, /tmp, /run, /var/tmp, /dev/shm together
  std::optional<uint64_t> scratch_files;  // inodes of the same
  std::optional<uint64_t> open_files;     // RLIMIT_NOFILE
  std::optional<uint64_t> file_bytes;     // RLIMIT_FSIZE
  std::optional<uint64_t> wall_seconds;   // deadline on the boot clock

  bool operator==(const Limits&) const = default;
};

struct Env {
  std::vector<std::string> allow;          // names passed from the launcher's environment
  std::map<std::string, std::string> set;  // names given a value

  bool operator==(const Env&) const = default;
};

// An agent CLI as a preset or a user's file describes it.
struct Agent {
  std::string name;                          // empty: no agent, no home paths
  std::vector<std::string> commands;         // program names that start it: "claude"
  std::vector<std::string> config_dirs;      // `~/…` folders bound read-write
  std::vector<std::string> config_files;     // `~/…` files bound read-write
  std::vector<std::string> credential_env;   // names passed when set
  std::vector<std::string> hosts;            // model API and login hosts
  std::vector<std::string> registries;       // package registries
  std::map<std::string, std::string> env;    // set for the agent
  std::vector<std::string> extra_arguments;  // put right after the program name: how its inner sandbox steps aside

  bool operator==(const Agent&) const = default;
};

struct Policy {
  Isolation isolation;
  Files files;
  GitAccess git = GitAccess::kRead;
  Limits limits;
  Env env;
  Agent agent;
  // Where each setting was said: `isolation.mode` or, for one entry of a list, `files.read /data`. For people only.
  std::map<std::string, std::string> sources;

  // The same permissions, wherever they were said.
  bool operator==(const Policy& other) const {
    return isolation == other.isolation && files == other.files && git == other.git && limits == other.limits &&
           env == other.env && agent == other.agent;
  }
};

}  // namespace belljar::policy
