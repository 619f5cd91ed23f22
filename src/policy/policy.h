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
// Whether programs that know no proxy reach the allowed hosts too: by names that resolve to addresses of the guest's
// own, whose connections the kernel redirects.
enum class Transparent : uint8_t {
  kAuto,      // where this host can do it
  kRequired,  // or no launch
  kOff,
};
enum class GitAccess : uint8_t { kRead, kWrite };
// What people build with in the home (read-only), and caches for it.
enum class Toolchains : uint8_t { kAuto, kNone };
enum class Home : uint8_t {
  kAgent,  // the guest's private home holds the agent's own paths
  kEmpty,  // it holds nothing: a Policy with this has no path of the home in its agent
};
// Whether the guest may write the clipboard of the person's terminal. Never may it read it.
enum class Clipboard : uint8_t { kDeny, kAllow };

// What may pass a rule's tunnels (CONNECT and its like).
enum class Tls : uint8_t {
  kTunnels,   // TLS that names the host; plain HTTP may be forwarded beside it
  kRequired,  // the same, and no plain HTTP
  kAny,       // whatever the two ends speak: ssh, databases
};

// A host the guest may reach, or one it may not (`deny`). `pattern` is canonical (lower case, A-labels, no trailing
// dot): `example.com` matches itself, `*.example.com` its subdomains and not itself, an address literal itself,
// `10.0.0.0/8` the address literals in that range. No ports means 80 and 443.
struct HostRule {
  std::string pattern;
  std::optional<uint16_t> port;  // from `host:5432`
  bool any_port = false;         // from `host:*`
  std::string source;            // where the rule came from: "preset claude", "flag", "FILE:12:3"
  Tls tls = Tls::kTunnels;

  std::vector<uint16_t> ports{};  // two or more, ascending; then `port` and `any_port` are not set
  bool deny = false;              // without ports it denies all of them
  bool host_port = false;         // a port of the host's own loopback, under the name kHostName
  bool hook = false;              // of the hook: only `methods` to exactly the one of `paths`, query included

  // Options of the table form; what a rule does not say it does not limit.
  std::vector<std::string> methods{};             // of plain HTTP; a rule with methods or paths opens no tunnel
  std::vector<std::string> paths{};               // prefixes, by whole segments; likewise
  std::optional<uint64_t> max_connections{};      // open at a time
  std::optional<uint64_t> max_bytes{};            // both ways together, over the session
  std::optional<uint64_t> requests_per_minute{};  // plain requests and tunnels

  std::string id{};  // `allow:example.com:5432`, unique in its session; given by session_rules()

  // The same rule, wherever it was said.
  bool operator==(const HostRule& other) const {
    return same_target(other) && methods == other.methods && paths == other.paths && tls == other.tls &&
           max_connections == other.max_connections && max_bytes == other.max_bytes &&
           requests_per_minute == other.requests_per_minute;
  }
  // For the same hosts and ports.
  [[nodiscard]] bool same_target(const HostRule& other) const {
    return pattern == other.pattern && port == other.port && any_port == other.any_port && ports == other.ports &&
           deny == other.deny && host_port == other.host_port && hook == other.hook;
  }
  [[nodiscard]] bool any_protocol() const { return tls == Tls::kAny; }
  [[nodiscard]] bool only_plain_http() const { return !methods.empty() || !paths.empty(); }
  [[nodiscard]] bool has_options() const {
    return only_plain_http() || tls != Tls::kTunnels || max_connections || max_bytes || requests_per_minute;
  }
};

// The name by which the guest reaches the granted ports of the host's loopback. Nothing is looked up for it.
inline constexpr const char* kHostName = "host.belljar";
// The name by which it reaches the hook, on port 80.
inline constexpr const char* kHookName = "hook.belljar";
// Isolation::upstream_proxy: as HTTPS_PROXY and NO_PROXY of the launcher's environment say.
inline constexpr const char* kUpstreamOfEnvironment = "environment";
// A port of this host's loopback that leads to one of the guest's. Neither is 0.
struct ExposedPort {
  uint16_t host = 0;
  uint16_t guest = 0;

  bool operator==(const ExposedPort&) const = default;
};

struct Isolation {
  Mode mode = Mode::kJail;
  Network network = Network::kDeny;
  std::string docker_image;                      // only with Mode::kDocker
  std::vector<HostRule> allow_hosts;             // beyond what the agent preset allows
  std::vector<HostRule> deny_hosts;              // win over whatever allows
  std::vector<HostRule> host_ports;              // of the host's own loopback
  std::vector<ExposedPort> expose;               // only with Network::kDeny does it do anything
  bool nested = false;                           // the agent's own inner sandbox may make namespaces and mounts
  Transparent transparent = Transparent::kAuto;  // no effect with Network::kAllow
  bool ask = false;           // a host that no rule decides about is a question to the person at the terminal
  uint64_t ask_seconds = 60;  // who has not answered by then has said no
  // By which HTTP proxy the host itself reaches the net: empty for none, kUpstreamOfEnvironment, or `http://HOST:PORT`.
  std::string upstream_proxy;

  bool operator==(const Isolation&) const = default;
};

// Paths are absolute and normal, or start with `~/` (the home of the person who launches) or are `.`-relative to the
// work folder as written; the plan resolves them.
struct Files {
  std::vector<std::string> read;
  std::vector<std::string> write;
  std::vector<std::string> hide;
  std::vector<std::string> approve;  // patterns, relative to the work folder: parse_pattern()
  Home home = Home::kAgent;
  Toolchains toolchains = Toolchains::kAuto;
  bool allow_home = false;  // the work folder may be `/`, the home, or a folder that the home lies in

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

// The file for the events of the way out.
struct Audit {
  std::string file;       // empty: none. Absolute, below `~/`, or relative to the work folder
  bool chain = false;     // each line vouches for those before it
  bool required = false;  // a line that cannot be written ends the session

  bool operator==(const Audit&) const = default;
};

struct Env {
  std::vector<std::string> allow;          // names passed from the launcher's environment
  std::map<std::string, std::string> set;  // names given a value

  bool operator==(const Env&) const = default;
};

struct Terminal {
  Clipboard clipboard = Clipboard::kDeny;

  bool operator==(const Terminal&) const = default;
};

// Where the agent's callbacks are relayed to. Only with Network::kDeny is there a relay.
struct Hook {
  std::string url;  // canonical (policy/hook_url.h); empty: nowhere
  // What goes along with each callback and the guest never sees: the value of a variable of the launcher's, or a fresh
  // token of the session that the launcher writes to a file of the person's (absolute, below `~/`, or relative to the
  // work folder). Not both; both empty: nothing.
  std::string token_env;
  std::string token_file;

  bool operator==(const Hook&) const = default;
};

// An agent CLI as a preset or a user's file describes it.
struct Agent {
  std::string name;                   // empty: no agent, no home paths
  std::vector<std::string> commands;  // program names that start it: "claude"
  // What it keeps in the home, as `~/…`. The guest's home is the session's own, so what stands in no list is gone at
  // the end. `{project}` and `{folder}` in `obeyed` and `history` stand for the folder that the agent starts in (see
  // plan/agent_files.h).
  std::vector<std::string> config_dirs;   // folders bound read-write, whole
  std::vector<std::string> config_files;  // files, such as a login: a copy, which the host takes back at the end
  std::vector<std::string> obeyed;        // what any later run executes or obeys: read-only
  std::vector<std::string> history;       // what was done: the host's own, read-write
  std::string state_file;                 // a JSON file: a copy, of which the host takes back these keys of its top
  std::vector<std::string> state_keys;
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
  Terminal terminal;
  Audit audit;
  Hook hook;
  std::string target;  // `ssh:HOST`, or empty: this host
  Agent agent;
  // The files that it was read from. Launches after this one are to find them as they are.
  std::vector<std::string> read_from;
  // Where each setting was said: `isolation.mode` or, for one entry of a list, `files.read /data`. For people only.
  std::map<std::string, std::string> sources;

  // The same permissions, wherever they were said.
  bool operator==(const Policy& other) const {
    return isolation == other.isolation && files == other.files && git == other.git && limits == other.limits &&
           env == other.env && terminal == other.terminal && audit == other.audit && hook == other.hook &&
           target == other.target && agent == other.agent;
  }
};

}  // namespace belljar::policy
