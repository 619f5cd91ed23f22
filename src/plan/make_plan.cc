#include "plan/make_plan.h"

#include <algorithm>
#include <utility>

#include "base/path.h"
#include "plan/agent_files.h"
#include "plan/bwrap_tier.h"
#include "plan/container_plan.h"
#include "plan/draft.h"
#include "plan/environment.h"
#include "plan/git_identity.h"
#include "plan/hook.h"
#include "plan/identity.h"
#include "plan/program.h"
#include "plan/protected_mounts.h"
#include "plan/special_files.h"
#include "plan/system_mounts.h"
#include "plan/toolchains.h"
#include "plan/upstream.h"
#include "plan/user_mounts.h"
#include "policy/host_rule.h"
#include "policy/merge.h"
#include "policy/preset.h"
#include "policy/values.h"

namespace belljar::plan {
namespace {

constexpr uint64_t kProcesses = 4096;
constexpr uint64_t kPids = 4000;  // below kProcesses, so that a guest that has too many is told of in the settlement
constexpr uint64_t kOpenFiles = 16384;
constexpr uint64_t kScratchBytes = uint64_t{4} << 30U;
constexpr uint64_t kScratchFiles = 1'000'000;
constexpr int kLandlockScopes = 6;  // the landlock version that shuts abstract unix sockets (Linux 6.12)

base::Status check_supported(const policy::Policy& policy) {
  using policy::Mode;
  const Mode mode = policy.isolation.mode;
  if (mode == Mode::kDocker && policy.isolation.nested) {
    return base::refuse("isolation.nested", "true", "an engine's container makes no namespaces inside, refusing",
                        "use mode = \"jail\"");
  }
  if (policy.isolation.nested && policy.files.allow_home) {
    return base::refuse("files.allow_home", "true",
                        "with nested = true the agent could move belljar's own folders out of the way, refusing",
                        "leave one of the two out");
  }
  if (mode == Mode::kNone) {
    if (policy.isolation.network == policy::Network::kDeny) {
      return base::refuse("isolation.network", "deny", "mode = \"none\" has no boundary to hold it, refusing",
                          "use mode = \"jail\", or say network = \"allow\"");
    }
    const policy::Limits& limits = policy.limits;
    if (limits.processes || limits.scratch_bytes || limits.scratch_files) {
      return base::refuse("limits", limits.processes ? "processes" : "scratch",
                          "mode = \"none\" has no boundary to hold it, refusing",
                          "use mode = \"jail\", or leave it out");
    }
    if (!policy.files.hide.empty()) {
      return base::refuse("files.hide", policy.files.hide.front(),
                          "mode = \"none\" has no boundary to hold it, refusing", "use mode = \"jail\"");
    }
  }
  return {};
}

base::Result<uint64_t> under_hard(const char* key, std::optional<uint64_t> asked, uint64_t preset, uint64_t hard) {
  if (!asked) return std::min(preset, hard);
  if (*asked > hard) {
    return base::refuse(
        "limits", key,
        std::to_string(*asked) + " is more than this host's hard limit of " + std::to_string(hard) + ", refusing",
        "ask for less, or raise the hard limit (ulimit -H, limits.conf)");
  }
  return *asked;
}

// A limit that needs a group: as the policy says, or where there is ground for one as the host suggests.
base::Status limit_by_group(const char* key, std::optional<uint64_t> asked, uint64_t preset, const CgroupFact& fact,
                            std::optional<uint64_t>& out, std::string& by) {
  if (asked && !fact.usable) {
    return base::refuse("limits", key, "this host cannot hold it: " + fact.fault + ", refusing",
                        "leave it out of the policy, or see 'belljar doctor' for what gives you a cgroup");
  }
  by = fact.usable ? fact.by : fact.fault;
  if (fact.usable) out = asked.value_or(preset);
  return {};
}

// Three quarters of the machine's, in whole MiB: the rest of the machine goes on.
uint64_t most_memory(uint64_t machine) {
  constexpr uint64_t kMiB = uint64_t{1} << 20U;
  return std::max(machine / 4 * 3 / kMiB * kMiB, uint64_t{16} * kMiB);
}

base::Result<ResourceLimits> make_limits(const policy::Limits& limits, const Facts& facts) {
  ResourceLimits out;
  BELLJAR_TRY(limit_by_group("memory", limits.memory_bytes, most_memory(facts.memory_bytes), facts.memory_group,
                             out.memory_bytes, out.memory_by));
  BELLJAR_TRY(limit_by_group("cpu", limits.cpu_percent, std::max<uint64_t>(facts.processors, 1) * 100, facts.cpu_group,
                             out.cpu_percent, out.cpu_by));
  BELLJAR_TRY(limit_by_group("pids", limits.pids, kPids, facts.pids_group, out.pids, out.pids_by));
  BELLJAR_ASSIGN(out.processes, under_hard("processes", limits.processes, kProcesses, facts.hard_processes));
  BELLJAR_ASSIGN(out.open_files, under_hard("open_files", limits.open_files, kOpenFiles, facts.hard_open_files));
  out.file_bytes = limits.file_bytes;
  out.scratch_bytes = limits.scratch_bytes.value_or(kScratchBytes);
  out.scratch_files = limits.scratch_files.value_or(kScratchFiles);
  out.wall_seconds = limits.wall_seconds;
  return out;
}

// An agent that no parser has seen may hold anything.
base::Status check_agent_hosts(const policy::Agent& agent) {
  for (const auto* list : {&agent.hosts, &agent.registries}) {
    for (const std::string& text : *list) BELLJAR_TRY(policy::parse_host_rule(text, ""));
  }
  return {};
}

// Out of the guest's reach: a record that the agent can write is none.
base::Result<policy::Audit> make_audit(policy::Audit audit, const Facts& facts, const std::vector<Mount>& mounts) {
  if (audit.file.empty()) {
    if (!audit.chain && !audit.required) return audit;
    return base::refuse("audit", audit.chain ? "chain" : "required", "no file is named, refusing",
                        "name it: audit.file, or --audit FILE");
  }
  BELLJAR_ASSIGN(audit.file, expand_path(audit.file, facts.home, facts.work_folder));
  for (const Mount& mount : mounts) {
    if (mount.kind != MountKind::kBind || !mount.writable || !base::is_within(audit.file, mount.source)) continue;
    return base::refuse("audit.file", audit.file, "the guest can write there, refusing",
                        "name a file outside of " + mount.source);
  }
  return audit;
}

// The agent's own arguments go right after its program's name, and only there.
std::vector<std::string> full_command(const policy::Agent& agent, std::vector<std::string> command) {
  const std::string name(base::name_of(command.front()));
  if (std::ranges::find(agent.commands, name) != agent.commands.end()) {
    command.insert(command.begin() + 1, agent.extra_arguments.begin(), agent.extra_arguments.end());
  }
  return command;
}

base::Status check_command(const std::vector<std::string>& command) {
  if (command.empty() || command.front().empty()) {
    return base::refuse("run", "", "no command is given", "belljar run -- COMMAND");
  }
  for (const std::string& word : command) {
    if (word.contains('\0')) return base::refuse("run", word, "an argument holds a NUL byte, refusing");
  }
  return {};
}

// The order matters: each step sees what the ones before have given.
base::Status add_mounts(Draft& draft, const std::string& command) {
  add_system(draft.table, draft.facts, draft.policy.isolation.nested);
  add_home(draft);
  BELLJAR_TRY(add_work_folder(draft));
  BELLJAR_TRY(add_agent_files(draft));
  BELLJAR_TRY(add_policy_files(draft));
  BELLJAR_TRY(add_git(draft));
  BELLJAR_TRY(add_program(draft, command));
  add_toolchains(draft);
  add_caches(draft);
  add_git_identity(draft);
  add_etc_links(draft.table, draft.facts, draft.policy.isolation.network == policy::Network::kDeny, draft.notes);
  BELLJAR_TRY(hide_own_folders(draft));
  BELLJAR_TRY(add_hidden(draft));
  add_notify(draft);
  BELLJAR_TRY(add_protected(draft));
  return add_special_files(draft);
}

// A person and the environment decide how the launcher's own connections go; the guest sees nothing of it.
base::Status add_way_out(Draft& draft, Plan& plan) {
  plan.proxy_port = plan.network == policy::Network::kDeny ? kProxyPort : uint16_t{0};
  BELLJAR_TRY(check_agent_hosts(draft.policy.agent));
  plan.hosts = policy::session_rules(draft.policy);
  const policy::Isolation& isolation = draft.policy.isolation;
  if (plan.network != policy::Network::kDeny) {
    if (isolation.ask) draft.notes.emplace_back("ask has no effect with network = allow: nothing is refused");
    return {};
  }
  plan.ask = isolation.ask;
  plan.ask_seconds = isolation.ask_seconds;
  BELLJAR_ASSIGN(plan.upstream, make_upstream(isolation.upstream_proxy, draft.facts.environment));
  if (plan.upstream) {
    draft.weakenings.push_back("upstream_proxy = " + to_text(*plan.upstream) +
                               ": it looks the allowed hosts up, so what addresses they have is not checked");
  } else if (!isolation.upstream_proxy.empty()) {
    draft.notes.emplace_back("upstream_proxy = environment: no proxy is set there, so hosts are reached directly");
  }
  return {};
}

void name_weakenings(Draft& draft) {
  if (draft.policy.terminal.clipboard == policy::Clipboard::kAllow) {
    draft.weakenings.emplace_back(
        "clipboard = allow: what the command prints can replace what you have copied, and you may paste it elsewhere");
  }
  const auto& isolation = draft.policy.isolation;
  if (isolation.nested) {
    draft.weakenings.emplace_back(
        "nested = true: the agent can make namespaces and mounts of its own, so more of the kernel is in its reach, "
        "landlock bounds no files, nothing of /proc is hidden, a tmpfs it mounts has no limit but memory's, and what "
        "is protected or hidden in the folders it may write keeps its content, but can be moved away");
  }
  if (isolation.network == policy::Network::kDeny) {
    for (const policy::ExposedPort& port : isolation.expose) {
      draft.weakenings.push_back("expose = " + policy::to_text(port) +
                                 ": every user and page of this host reaches port " + std::to_string(port.guest) +
                                 " of the guest by 127.0.0.1:" + std::to_string(port.host));
    }
    return;
  }
  if (!isolation.expose.empty()) {
    draft.notes.emplace_back("expose has no effect with network = allow: what listens there is on the host's network");
  }
  std::string text =
      "network = allow: the host's network is shared, with every service on its loopback, its neighbours and cloud "
      "metadata addresses";
  if (draft.facts.landlock_abi < kLandlockScopes) text += ", and its abstract unix sockets";
  if (isolation.mode == policy::Mode::kDocker) {
    text =
        "network = allow: the engine's bridge network, by which the internet, neighbours, cloud metadata addresses and "
        "what listens on this host's other addresses are reached";
  }
  draft.weakenings.push_back(std::move(text));
  if (!draft.policy.isolation.allow_hosts.empty()) {
    draft.notes.emplace_back("allow_hosts has no effect with network = allow");
  }
  if (!draft.policy.hook.url.empty()) {
    draft.notes.emplace_back(
        "hook: with network = allow nothing is relayed; the agent calls it itself, without the token");
  }
}

// What every guest is called, with a hosts file in which that name and the loopback's are found. With a network of its
// own it needs nothing of the host's file, which tells names of the inside.
constexpr const char* kHostname = "belljar";

void add_hosts_file(Draft& draft) {
  std::string text;
  if (draft.policy.isolation.network == policy::Network::kAllow) {
    text = draft.facts.hosts;
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
    text += std::string("127.0.1.1 ") + kHostname + "\n";
  } else {
    text = std::string("127.0.0.1 localhost ") + kHostname + "\n::1 localhost ip6-localhost ip6-loopback\n";
  }
  // Only over a file that the host has and the policy says nothing about.
  if (draft.facts.hosts.empty() || !draft.table.shows("/etc/hosts") || draft.table.at("/etc/hosts") != nullptr) return;
  draft.table.add({.kind = MountKind::kFile,
                   .target = "/etc/hosts",
                   .source = std::move(text),
                   .reason = "names of the loopback and of the guest"});
}

std::vector<std::string> writable_trees(const std::vector<Mount>& mounts) {
  std::vector<std::string> out;
  for (const Mount& mount : mounts) {
    const bool tree = mount.kind == MountKind::kScratch || mount.kind == MountKind::kBind;
    if (tree && mount.writable) out.push_back(mount.target);
  }
  return out;
}

// Folders beside the work folder that the policy lets the guest write, none within another.
std::vector<std::string> swept_trees(const Draft& draft, const std::vector<Mount>& mounts) {
  std::vector<std::string> out;
  for (const Mount& mount : mounts) {
    if (mount.kind != MountKind::kBind || !mount.writable || mount.reason != kWriteReason) continue;
    if (base::is_within(mount.target, draft.facts.work_folder) || draft.kind_of(mount.target) != FileKind::kFolder) {
      continue;
    }
    const bool inner =
        std::ranges::any_of(out, [&](const std::string& tree) { return base::is_within(mount.target, tree); });
    if (!inner) out.push_back(mount.target);
  }
  return out;
}

// Of `limits`, what the policy names: without a boundary the rest is as in the person's own shell.
ResourceLimits named_limits(const policy::Limits& named, ResourceLimits limits) {
  limits.processes = limits.scratch_bytes = limits.scratch_files = 0;
  if (!named.open_files) limits.open_files = 0;
  if (!named.memory_bytes) limits.memory_bytes.reset();
  if (!named.cpu_percent) limits.cpu_percent.reset();
  if (!named.pids) limits.pids.reset();
  return limits;
}

base::Result<Plan> plan_without_boundary(Draft& draft, Plan plan) {
  const Facts& facts = draft.facts;
  BELLJAR_TRY(check_program(facts.program, plan.command.front()));
  plan.program = facts.program.files.front().path;
  draft.table.add({.target = "/", .source = "/", .writable = true, .reason = "no boundary: the whole host"});
  draft.home = draft.real_home = facts.home;
  draft.identity = {.guest_uid = facts.uid,
                    .guest_gid = facts.gid,
                    .host_uid = facts.uid,
                    .host_gid = facts.gid,
                    .disk_uid = facts.uid,
                    .disk_gid = facts.gid};
  BELLJAR_ASSIGN(plan.chdir, start_folder(draft));
  BELLJAR_ASSIGN(plan.env, make_environment(draft, plan.chdir, 0));
  plan.weakenings = {"mode = none: NO BOUNDARY. The command can do whatever you can"};
  plan.notes = std::move(draft.notes);
  plan.limits = named_limits(draft.policy.limits, std::move(plan.limits));
  plan.home = draft.home;
  plan.identity = draft.identity;
  return plan;
}

base::Status add_exposed(const policy::Policy& policy, Plan& plan) {
  if (plan.network != policy::Network::kDeny) return {};
  plan.expose = policy.isolation.expose;
  for (const policy::ExposedPort& port : plan.expose) {
    if (port.guest != plan.proxy_port) continue;
    return base::refuse("isolation.expose", policy::to_text(port), "the guest's way out has that port, refusing",
                        "name another port of the guest");
  }
  return {};
}

void hand_over_home(Draft& draft, Plan& plan) {
  plan.home = draft.home;
  if (!draft.shared_home) plan.private_home = draft.real_home;
  plan.kept = std::move(draft.kept);
  plan.folder_marker = std::move(draft.folder_marker);
  plan.caches = std::move(draft.caches);
  plan.histories = std::move(draft.histories);
}

}  // namespace

base::Result<Plan> make_plan(const policy::Policy& asked, const Facts& facts, const Request& request) {
  BELLJAR_TRY(check_bwrap(asked, facts));
  BELLJAR_TRY(check_supported(asked));
  policy::Policy policy = asked;
  // An agent must not be told of a boundary that is not there, nor to leave its own off where that is wanted.
  if (policy.isolation.mode == policy::Mode::kNone || policy.isolation.nested) {
    policy::keep_inner_sandbox(policy.agent);
  }
  const std::vector<std::string> command = command_of(policy, request);
  BELLJAR_TRY(check_command(command));
  Plan plan;
  plan.mode = policy.isolation.mode;
  plan.network = policy.isolation.network;
  plan.clipboard = policy.terminal.clipboard;
  plan.nested = policy.isolation.nested && plan.mode != policy::Mode::kNone;
  plan.transparent = policy.isolation.transparent;
  plan.work_folder = facts.work_folder;
  plan.agent = policy.agent.name;
  plan.command = full_command(policy.agent, command);
  BELLJAR_ASSIGN(plan.limits, make_limits(policy.limits, facts));
  Draft draft{.policy = policy, .facts = facts, .request = request};
  if (plan.mode == policy::Mode::kNone) return plan_without_boundary(draft, std::move(plan));

  const bool container = plan.mode == policy::Mode::kDocker;
  if (container) {
    BELLJAR_TRY(check_container(policy, facts));
    BELLJAR_TRY(add_container_mounts(draft));
    plan.transparent = policy::Transparent::kOff;
    plan.limits.processes = 0;
  } else {
    BELLJAR_TRY(add_mounts(draft, command.front()));
  }
  name_weakenings(draft);
  BELLJAR_TRY(add_way_out(draft, plan));
  BELLJAR_TRY(add_exposed(policy, plan));
  BELLJAR_ASSIGN(plan.chdir, start_folder(draft));
  BELLJAR_ASSIGN(plan.env, make_environment(draft, plan.chdir, plan.proxy_port));
  BELLJAR_ASSIGN(plan.hook, make_hook(policy, facts, plan.env));
  if (container) {
    add_container_accounts(draft);
    add_image_environment(facts, plan.env);
    plan.program = plan.command.front();  // looked for inside
    plan.container = {facts.engine.socket, policy.isolation.docker_image, facts.engine.image_id,
                      facts.engine.image_env};
    if (plan.container.image.empty()) plan.container.image = kDefaultImage;
  } else {
    add_accounts(draft.table, facts, draft.identity, draft.home, guest_shell(draft));
    add_hosts_file(draft);
    plan.program = facts.program.files.front().path;
  }
  plan.identity = draft.identity;
  plan.hostname = kHostname;
  hand_over_home(draft, plan);
  hold_in_place(draft);
  plan.mounts = draft.table.in_order();
  plan.protected_paths = facts.protected_paths;
  plan.watched = facts.watched;
  plan.approved = policy.files.approve;
  plan.git_folders = facts.git_folders;
  BELLJAR_ASSIGN(plan.audit, make_audit(policy.audit, facts, plan.mounts));
  BELLJAR_ASSIGN(plan.hook.token_file, place_token_file(plan.hook, facts, plan.mounts));
  plan.writable = writable_trees(plan.mounts);
  plan.swept = swept_trees(draft, plan.mounts);
  plan.weakenings = std::move(draft.weakenings);
  plan.notes = std::move(draft.notes);
  if (plan.mode == policy::Mode::kBwrap) BELLJAR_TRY(fit_to_bwrap(facts, plan));
  return plan;
}

}  // namespace belljar::plan
