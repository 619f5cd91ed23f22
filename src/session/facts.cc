#include "session/facts.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <future>
#include <memory>
#include <string_view>
#include <utility>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "linux/bubblewrap.h"
#include "linux/cgroup_ground.h"
#include "plan/agent_files.h"
#include "plan/git_identity.h"
#include "plan/hook.h"
#include "plan/identity.h"
#include "plan/toolchains.h"
#include "session/agent_files.h"
#include "session/engine_facts.h"
#include "session/find_program.h"
#include "session/protected_facts.h"
#include "session/recover.h"
#include "session/special_facts.h"
#include "session/state_folder.h"
#include "session/tool_secrets.h"
#include "session/walk.h"
#include "workspace/protected.h"

namespace belljar::session {
namespace {

using plan::Facts;
using plan::FileKind;
using plan::PathFact;
using plan::RootEntry;

constexpr size_t kSmallFile = 64U << 10U;
constexpr auto kEngineTime = std::chrono::seconds(20);

std::string value_of(const Launcher& launcher, std::string_view name) {
  const auto found = launcher.environment.find(name);
  return found == launcher.environment.end() ? std::string() : found->second;
}

// A regular file that is no link; empty when it is anything else.
std::string text_of(const char* path) {
  auto text = base::read_file(path, size_t{1} << 20U, false);
  return text ? std::move(*text) : std::string();
}

RootEntry root_entry(Walker& walker, const std::string& path) {
  const PathFact fact = walker.walk(path);
  RootEntry out;
  if (!fact.links.empty() && fact.links.front().path == path) {
    out.kind = RootEntry::Kind::kLink;
    out.target = fact.links.front().target;
  } else if (fact.kind == FileKind::kFolder) {
    out.kind = RootEntry::Kind::kFolder;
  }
  return out;
}

// The secrets of /etc that exist, by real path; ssh host keys are private when not `.pub`.
std::vector<std::string> etc_secrets(Walker& walker) {
  std::vector<std::string> names;
  for (const std::string_view name : plan::etc_secret_names()) names.emplace_back(name);
  const std::unique_ptr<DIR, int (*)(DIR*)> ssh(::opendir("/etc/ssh"), &::closedir);
  while (ssh) {
    const dirent* entry = ::readdir(ssh.get());
    if (entry == nullptr) break;
    const std::string_view name(static_cast<const char*>(entry->d_name));
    if (name.starts_with("ssh_host_") && name.ends_with("_key")) names.push_back("/etc/ssh/" + std::string(name));
  }
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (!walker.exists(name)) continue;
    PathFact fact = walker.walk(name);
    if (fact.kind != FileKind::kAbsent) out.push_back(std::move(fact.real));
  }
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(out);
  out.erase(repeated.begin(), repeated.end());
  return out;
}

plan::BwrapFact look_at_bubblewrap(std::string_view path) {
  const linux::Bubblewrap found = linux::find_bubblewrap(path);
  return {found.path, linux::to_text(found.version), found.fault, found.remedy, found.follows_links()};
}

std::vector<std::string> own_folders(const Launcher& launcher, const Facts& facts) {
  std::vector<std::string> out;
  const auto add = [&](const char* variable, const std::string& usual) {
    // A variable that is set elsewhere does not undo the usual place, where an earlier launch may have kept things.
    for (const std::string& folder : {base::normal_path(value_of(launcher, variable)), base::normal_path(usual)}) {
      if (!folder.empty()) out.push_back((folder == "/" ? "" : folder) + "/belljar");
    }
  };
  const std::string home = facts.home.empty() ? "" : facts.home + "/";
  add("XDG_STATE_HOME", home.empty() ? "" : home + ".local/state");
  add("XDG_DATA_HOME", home.empty() ? "" : home + ".local/share");
  add("XDG_CONFIG_HOME", home.empty() ? "" : home + ".config");
  add("XDG_CACHE_HOME", home.empty() ? "" : home + ".cache");
  add("XDG_RUNTIME_DIR", "/run/user/" + std::to_string(facts.uid));
  // And the programs.
  if (const auto program = base::real_path("/proc/self/exe")) {
    out.push_back(*program);
    for (const char* name : {"/belljar-guest", "/belljar-notify", "/belljar-tls"})
      out.push_back(base::parent_of(*program) + name);
  }
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(out);
  out.erase(repeated.begin(), repeated.end());
  return out;
}

std::string home_of(const Launcher& launcher, const Facts& facts) {
  std::string home = base::normal_path(value_of(launcher, "HOME"));
  if (!home.empty()) return home;
  for (const plan::User& user : plan::users_of(facts.passwd)) {
    if (user.uid == facts.uid) return base::normal_path(user.home);
  }
  return {};
}

std::vector<plan::IdRange> id_ranges() {
  std::vector<plan::IdRange> out;
  const auto text = base::read_file("/proc/self/uid_map", kSmallFile);
  if (!text) return out;
  for (const std::string_view line : base::split(*text, '\n')) {
    std::vector<uint64_t> numbers;
    for (const std::string_view word : base::split(line, ' ')) {
      uint64_t number = 0;
      if (base::parse_uint(word, number)) numbers.push_back(number);
    }
    if (numbers.size() == 3) {
      out.push_back({static_cast<uint32_t>(numbers[0]), static_cast<uint32_t>(numbers[2])});
    }
  }
  return out;
}

std::vector<gid_t> own_groups() {
  const int count = ::getgroups(0, nullptr);
  std::vector<gid_t> out(count > 0 ? static_cast<size_t>(count) : 0);
  const int got = ::getgroups(static_cast<int>(out.size()), out.data());
  out.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return out;
}

uint64_t hard_limit(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_max : 0;
}

void gather_person(Facts& facts, const Launcher& launcher) {
  facts.uid = ::geteuid();
  facts.gid = ::getegid();
  facts.groups = own_groups();
  facts.root = facts.uid == 0;
  facts.launcher = ::getpid();
  if (facts.root) facts.id_ranges = id_ranges();
  facts.passwd = text_of("/etc/passwd");
  facts.group = text_of("/etc/group");
  facts.environment = launcher.environment;
  facts.home = home_of(launcher, facts);
  facts.own_folders = own_folders(launcher, facts);
  facts.hard_open_files = hard_limit(RLIMIT_NOFILE);
  facts.hard_processes = hard_limit(RLIMIT_NPROC);
}

plan::CgroupFact group_fact(const linux::CgroupGround& ground) {
  plan::CgroupFact out;
  out.usable = ground.usable();
  out.fault = ground.fault;
  if (ground.kind == linux::CgroupGround::Kind::kSystemd) {
    out.by = "cgroup v2 in a scope of systemd's";
  } else if (out.usable) {
    out.by = "cgroup v" + std::to_string(ground.version) + " in " + ground.folder;
  }
  return out;
}

void add_groups(Facts& facts, const linux::CgroupGrounds& grounds) {
  facts.memory_group = group_fact(grounds[static_cast<size_t>(linux::Controller::kMemory)]);
  facts.cpu_group = group_fact(grounds[static_cast<size_t>(linux::Controller::kCpu)]);
  facts.pids_group = group_fact(grounds[static_cast<size_t>(linux::Controller::kPids)]);
}

// What the limits that nobody names are measured by.
void gather_machine(Facts& facts) {
  struct sysinfo machine{};
  if (::sysinfo(&machine) == 0) facts.memory_bytes = uint64_t{machine.totalram} * machine.mem_unit;
  cpu_set_t allowed;
  const bool told = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;  // EINVAL: more than a cpu_set_t holds
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  facts.processors = told ? static_cast<uint64_t>(CPU_COUNT(&allowed)) : static_cast<uint64_t>(online > 0 ? online : 1);
}

// Belljar's own cache folder, by the XDG base directory specification.
std::string cache_folder(const Launcher& launcher, const Facts& facts, Walker& walker) {
  std::string base = base::normal_path(value_of(launcher, "XDG_CACHE_HOME"));
  if (base.empty() && !facts.home.empty()) base = facts.home + "/.cache";
  return base.empty() ? std::string() : walker.walk(base).real + "/belljar";
}

// Where each entry of the folder of links leads; of very many, the first ones that the system names.
std::vector<PathFact> tool_links(const Facts& facts, Walker& walker) {
  constexpr size_t kMost = 1000;
  std::vector<PathFact> out;
  const std::string folder = facts.home + std::string(plan::kLinkFolder.substr(1));
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(facts.home.empty() ? nullptr : ::opendir(folder.c_str()),
                                                    &::closedir);
  while (entries && out.size() < kMost) {
    const dirent* entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) continue;
    const std::string name(static_cast<const char*>(entry->d_name));
    if (name == "." || name == "..") continue;
    PathFact fact = walker.walk(folder + "/" + name);
    if (fact.kind == FileKind::kFile && !fact.links.empty()) out.push_back(std::move(fact));
  }
  std::ranges::sort(out, {}, &PathFact::real);
  return out;
}

// The folders of toolchains that are there, as real paths.
std::vector<std::string> tool_folders(const Facts& facts, Walker& walker) {
  std::vector<std::string> out;
  for (const std::string_view text : plan::toolchain_folders()) {
    const PathFact fact = walker.walk(facts.home + std::string(text.substr(1)));
    if (fact.kind == FileKind::kFolder) out.push_back(fact.real);
  }
  return out;
}

// What git itself reads, in its order (git-config(1), "FILES").
plan::GitIdentity git_identity(const Launcher& launcher, const Facts& facts) {
  plan::GitIdentity out;
  std::string config = base::normal_path(value_of(launcher, "XDG_CONFIG_HOME"));
  if (config.empty() && !facts.home.empty()) config = facts.home + "/.config";
  std::vector<std::string> files;
  if (!config.empty()) files.push_back(config + "/git/config");
  if (!facts.home.empty()) files.push_back(facts.home + "/.gitconfig");
  for (const std::string& file : files) {
    if (const auto text = base::read_regular_file(file, kSmallFile, true)) plan::read_git_identity(*text, out);
  }
  return out;
}

void gather_system(Facts& facts, Walker& walker) {
  for (const std::string_view name : plan::root_entry_names()) {
    facts.root_entries.emplace(name, root_entry(walker, std::string(name)));
  }
  facts.etc_secrets = etc_secrets(walker);
  for (const std::string_view name : plan::device_names()) {
    if (walker.walk("/dev/" + std::string(name)).kind == FileKind::kOther) facts.devices.emplace_back(name);
  }
  facts.resolver = walker.walk("/etc/resolv.conf");
  if (!facts.resolver.links.empty() && facts.resolver.kind == FileKind::kFile) {
    auto text = base::read_file(facts.resolver.real, kSmallFile);
    if (text) {
      facts.resolver_text = std::move(*text);
    } else {
      facts.resolver.kind = FileKind::kAbsent;
    }
  }
  facts.localtime = walker.walk("/etc/localtime");
  facts.hosts = text_of("/etc/hosts");
  facts.cpu_topology = walker.walk("/sys/devices/system/cpu").kind == FileKind::kFolder;
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  facts.landlock_abi = abi > 0 ? static_cast<int>(abi) : 0;
}

PathFact named_by(Walker& walker, const std::string& file, std::string_view prefix, const std::string& folder) {
  const auto path = path_named_by(file, prefix, folder);
  return path ? walker.walk(*path) : PathFact{};
}

bool looks_like_repository(Walker& walker, const std::string& folder) {
  return walker.walk(folder + "/HEAD").kind == FileKind::kFile &&
         walker.walk(folder + "/objects").kind == FileKind::kFolder;
}

// Why the folder at `gitdir` is not the other half of the worktree whose `.git` is `dot_git`, or empty.
std::string worktree_fault(Walker& walker, const PathFact& gitdir, const PathFact& dot_git,
                           const std::string& work_folder) {
  if (gitdir.kind != FileKind::kFolder) return "it does not exist";
  if (base::is_within(gitdir.real, work_folder)) return "it lies in the work folder itself";
  if (gitdir.uid != dot_git.uid) return "it belongs to another user";
  const std::string worktrees = base::parent_of(gitdir.real);
  if (base::name_of(worktrees) != "worktrees") return "it is not a worktree's";
  const std::string common = base::parent_of(worktrees);
  if (named_by(walker, gitdir.real + "/commondir", "", gitdir.real).real != common ||
      !looks_like_repository(walker, common)) {
    return "it is not inside a repository";
  }
  if (named_by(walker, gitdir.real + "/gitdir", "", gitdir.real).real != dot_git.real)
    return "it does not point back here";
  return {};
}

// True when the folder at `gitdir` is the repository of the submodule `work_folder`: its configuration says so
// (gitsubmodules(7), core.worktree in git-config(1)).
bool is_of_submodule(Walker& walker, const PathFact& gitdir, const PathFact& dot_git, const std::string& work_folder) {
  if (gitdir.kind != FileKind::kFolder || gitdir.uid != dot_git.uid || base::is_within(gitdir.real, work_folder) ||
      !looks_like_repository(walker, gitdir.real)) {
    return false;
  }
  const auto text = base::read_regular_file(gitdir.real + "/config", kSmallFile, false);
  if (!text || text->contains('\0')) return false;
  bool core = false;
  for (std::string_view line : base::split(*text, '\n')) {
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (line.starts_with('[')) core = line.starts_with("[core]");
    constexpr std::string_view kKey = "worktree = ";
    if (!core || !line.starts_with(kKey)) continue;
    const std::string path(line.substr(kKey.size()));
    return walker.walk(path.starts_with('/') ? path : gitdir.real + "/" + path).real == work_folder;
  }
  return false;
}

// Asked after they were read.
bool may_be_of_guests(const std::vector<std::string>& files) {
  const std::vector<LiveTree> live = live_trees(state_path());
  return std::ranges::any_of(files, [&](const std::string& file) {
    workspace::FileLook found;
    const bool known = workspace::look_at(AT_FDCWD, file.c_str(), found);
    return std::ranges::any_of(live, [&](const LiveTree& tree) {
      return base::is_within(file, tree.root) && (!known || found.changed >= tree.since);
    });
  });
}

// Where else the repository at `common` finds objects (gitrepository-layout(5), objects/info/alternates), and those in
// turn, as git follows them. Only what is the object folder of a repository of the same owner: a guest can change no
// such file that there was (workspace/protected), but whoever wrote it before is not known. One that has been made
// since another session's guest is at work there may be that guest's.
std::vector<PathFact> alternates_of(Walker& walker, const PathFact& common) {
  constexpr size_t kMost = 20;
  std::vector<PathFact> out;
  std::vector<std::string> files;
  std::vector<std::string> folders{common.real + "/objects"};
  for (size_t at = 0; at < folders.size() && folders.size() <= kMost; ++at) {
    const std::string file = folders[at] + "/info/alternates";
    // A link on the way would be a guest's.
    if (!walker.walk(file).links.empty()) continue;
    const auto text = base::read_regular_file(file, kSmallFile, false);
    if (!text || text->contains('\0')) continue;
    for (const std::string_view line : base::split(*text, '\n')) {
      if (line.empty() || line.starts_with('#') || line.starts_with('"')) continue;
      const std::string path = line.front() == '/' ? std::string(line) : folders[at] + "/" + std::string(line);
      PathFact fact = walker.walk(path);
      const bool objects = fact.kind == FileKind::kFolder && base::name_of(fact.real) == "objects" &&
                           looks_like_repository(walker, base::parent_of(fact.real)) && fact.uid == common.uid;
      if (!objects || std::ranges::find(folders, fact.real) != folders.end()) continue;
      folders.push_back(fact.real);
      files.push_back(file);
      out.push_back(std::move(fact));
    }
  }
  if (!files.empty() && may_be_of_guests(files)) out.clear();
  return out;
}

// What a commit in a linked worktree writes outside of the worktree's own folder.
std::vector<PathFact> shared_by_worktrees(Walker& walker, const std::string& common) {
  std::vector<PathFact> out;
  for (const char* name : {"/objects", "/objects/info", "/refs", "/logs/refs"})
    out.push_back(walker.walk(common + name));
  return out;
}

plan::GitFact look_at_git_file(const std::string& work_folder, Walker& walker, const PathFact& dot_git) {
  using Kind = plan::GitFact::Kind;
  plan::GitFact out;
  const PathFact gitdir = named_by(walker, dot_git.real, "gitdir: ", work_folder);
  out.reason = worktree_fault(walker, gitdir, dot_git, work_folder);
  if (out.reason.empty()) {
    out.kind = Kind::kWorktree;
    out.own = gitdir;
    out.common = walker.walk(base::parent_of(base::parent_of(gitdir.real)));
    out.shared = shared_by_worktrees(walker, out.common.real);
  } else if (is_of_submodule(walker, gitdir, dot_git, work_folder)) {
    out.kind = Kind::kWorktree;
    out.common = gitdir;
  } else {
    out.kind = Kind::kUnverified;
    out.reason = "'" + gitdir.real + "': " + out.reason;
  }
  return out;
}

// On a thread of its own, which has ended when the answer is taken. The launch's own time holds for it, too.
std::future<EngineLook> ask_engine(const policy::Policy& policy, const Launcher& launcher) {
  std::chrono::seconds time = kEngineTime;
  if (policy.limits.wall_seconds) time = std::min(time, std::chrono::seconds(*policy.limits.wall_seconds));
  return std::async(std::launch::async, look_at_engine, value_of(launcher, "DOCKER_HOST"),
                    policy.isolation.docker_image, base::Deadline::after(time));
}

}  // namespace

plan::GitFact look_at_git(const std::string& work_folder, Walker& walker) {
  using Kind = plan::GitFact::Kind;
  plan::GitFact out;
  const std::string path = work_folder + "/.git";
  const PathFact fact = walker.walk(path);
  if (!fact.links.empty()) {
    out.kind = Kind::kLink;
    out.common = fact;
    return out;
  }
  if (fact.kind == FileKind::kFile) out = look_at_git_file(work_folder, walker, fact);
  if (fact.kind == FileKind::kFolder) out.kind = Kind::kFolder;
  if (out.kind != Kind::kFolder && out.kind != Kind::kWorktree) return out;
  const PathFact& repository = out.kind == Kind::kFolder ? fact : out.common;
  const auto part = [&](const char* name, FileKind kind, bool& has) {
    const PathFact found = walker.walk(repository.real + "/" + name);
    has = found.kind == kind && found.links.empty();
    out.has_links = out.has_links || !found.links.empty();
  };
  part("hooks", FileKind::kFolder, out.has_hooks);
  part("config", FileKind::kFile, out.has_config);
  out.alternates = alternates_of(walker, repository);
  return out;
}

base::Result<Launcher> current_launcher() {
  Launcher out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t at = text.find('=');
    // The first of a name that occurs twice is the one getenv(3) finds.
    if (at != std::string_view::npos && at != 0) out.environment.emplace(text.substr(0, at), text.substr(at + 1));
  }
  // Deleted is ENOENT; outside the root gets a name that is not absolute (getcwd(2)).
  std::array<char, PATH_MAX> folder{};
  const int code = ::getcwd(folder.data(), folder.size()) == nullptr ? errno : folder.front() != '/' ? ENOENT : 0;
  if (code != 0) return base::system_error("find the current folder", "", code, "cd to a folder that exists");
  out.folder = folder.data();
  out.groups = linux::find_cgroup_grounds();
  return out;
}

base::Result<Facts> gather_facts(const policy::Policy& policy, const plan::Request& request, const Launcher& launcher,
                                 EngineLook* engine) {
  Facts facts;
  BELLJAR_ASSIGN(facts.work_folder, base::real_path(launcher.folder));
  gather_person(facts, launcher);
  const bool container = policy.isolation.mode == policy::Mode::kDocker;
  // It takes as long as all the rest.
  std::future<EngineLook> asked;
  if (container) asked = ask_engine(policy, launcher);
  // An engine mounts nothing through an id map.
  Walker walker(facts.root && !container);
  gather_system(facts, walker);
  gather_machine(facts);
  if (!container) add_groups(facts, launcher.groups);
  if (policy.isolation.mode == policy::Mode::kBwrap) facts.bwrap = look_at_bubblewrap(value_of(launcher, "PATH"));
  facts.file_system = file_system_name(facts.work_folder);
  facts.git = look_at_git(facts.work_folder, walker);
  BELLJAR_TRY(gather_protected(policy, facts, walker));
  facts.git_identity = git_identity(launcher, facts);
  facts.cache_folder = cache_folder(launcher, facts, walker);
  facts.tool_links = tool_links(facts, walker);
  if (policy.files.toolchains == policy::Toolchains::kAuto && !facts.home.empty()) {
    ToolSecrets found = find_tool_secrets(tool_folders(facts, walker));
    facts.tool_secrets = std::move(found.files);
    facts.tools_unseen = std::move(found.unseen);
  }
  BELLJAR_ASSIGN(const std::string start, plan::start_folder(facts, request));
  facts.agent_folder = agent_folder(policy.agent, facts.home, start);
  BELLJAR_ASSIGN(const std::vector<std::string> paths, plan::needed_paths(policy, facts, request));
  for (const std::string& path : paths) facts.paths.emplace(path, walker.walk(path));
  if (const auto self = policy.hook.url.empty() ? base::Result<std::string>() : base::real_path("/proc/self/exe");
      self && !self->empty()) {
    facts.paths.emplace(plan::kNotifyFact, walker.walk(base::parent_of(*self) + "/belljar-notify"));
  }
  BELLJAR_TRY(gather_special_files(policy, facts, walker));
  if (container) {
    EngineLook look = asked.get();
    add_engine(look, facts);
    if (engine != nullptr) *engine = std::move(look);
    return facts;
  }
  const std::vector<std::string> command = plan::command_of(policy, request);
  if (command.empty()) return facts;
  const PathFact home = walker.walk(facts.home.empty() ? "/" : facts.home);
  facts.program = find_program(command.front(), value_of(launcher, "PATH"), start, home.real, walker);
  return facts;
}

}  // namespace belljar::session
