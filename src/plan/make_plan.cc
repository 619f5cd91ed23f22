#include "plan/make_plan.h"

#include <algorithm>
#include <utility>

#include "base/path.h"
#include "plan/draft.h"
#include "plan/environment.h"
#include "plan/identity.h"
#include "plan/program.h"
#include "plan/system_mounts.h"
#include "plan/user_mounts.h"
#include "policy/host_rule.h"
#include "policy/preset.h"

namespace belljar::plan {
namespace {

constexpr uint64_t kProcesses = 4096;
constexpr uint64_t kOpenFiles = 16384;
constexpr uint64_t kScratchBytes = uint64_t{4} << 30U;
constexpr uint64_t kScratchFiles = 1'000'000;
constexpr int kLandlockScopes = 6;  // the landlock version that shuts abstract unix sockets (Linux 6.12)

base::Status check_supported(const policy::Policy& policy) {
  using policy::Mode;
  const Mode mode = policy.isolation.mode;
  if (mode == Mode::kBwrap || mode == Mode::kDocker) {
    return base::refuse("isolation.mode", mode == Mode::kBwrap ? "bwrap" : "docker", "not in this version, refusing",
                        "use mode = \"jail\"");
  }
  if (mode == Mode::kNone) {
    if (policy.isolation.network == policy::Network::kDeny) {
      return base::refuse("isolation.network", "deny", "mode = \"none\" has no boundary to hold it, refusing",
                          "use mode = \"jail\", or say network = \"allow\"");
    }
    if (!policy.files.hide.empty()) {
      return base::refuse("files.hide", policy.files.hide.front(),
                          "mode = \"none\" has no boundary to hold it, refusing", "use mode = \"jail\"");
    }
  }
  const auto needs_cgroup = [](const char* key) {
    return base::refuse("limits", key, "it needs a cgroup, which this version does not make, refusing",
                        "take it out of the policy, or start belljar in a scope that has it: systemd-run --scope");
  };
  if (policy.limits.memory_bytes) return needs_cgroup("memory");
  if (policy.limits.cpu_percent) return needs_cgroup("cpu");
  if (policy.limits.pids) return needs_cgroup("pids");
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

base::Result<ResourceLimits> make_limits(const policy::Limits& limits, const Facts& facts) {
  ResourceLimits out;
  BELLJAR_ASSIGN(out.processes, under_hard("processes", limits.processes, kProcesses, facts.hard_processes));
  BELLJAR_ASSIGN(out.open_files, under_hard("open_files", limits.open_files, kOpenFiles, facts.hard_open_files));
  out.file_bytes = limits.file_bytes;
  out.scratch_bytes = limits.scratch_bytes.value_or(kScratchBytes);
  out.scratch_files = limits.scratch_files.value_or(kScratchFiles);
  out.wall_seconds = limits.wall_seconds;
  return out;
}

base::Result<std::vector<policy::HostRule>> make_hosts(const policy::Policy& policy) {
  std::vector<policy::HostRule> out;
  const auto add = [&](policy::HostRule rule) {
    if (std::ranges::find(out, rule) == out.end()) out.push_back(std::move(rule));
  };
  const std::string preset = "preset " + policy.agent.name;
  for (const auto* list : {&policy.agent.hosts, &policy.agent.registries}) {
    for (const std::string& text : *list) {
      BELLJAR_ASSIGN(policy::HostRule rule, policy::parse_host_rule(text, preset));
      add(std::move(rule));
    }
  }
  for (const policy::HostRule& rule : policy.isolation.allow_hosts) add(rule);
  return out;
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
  add_system(draft.table, draft.facts);
  add_home(draft);
  BELLJAR_TRY(add_work_folder(draft));
  BELLJAR_TRY(add_agent_config(draft));
  BELLJAR_TRY(add_policy_files(draft));
  BELLJAR_TRY(add_git(draft));
  BELLJAR_TRY(add_program(draft, command));
  add_etc_links(draft.table, draft.facts, draft.notes);
  BELLJAR_TRY(hide_own_folders(draft));
  return add_hidden(draft);
}

void name_weakenings(Draft& draft) {
  if (draft.policy.isolation.network != policy::Network::kAllow) return;
  std::string text =
      "network = allow: the host's network is shared, with every service on its loopback, its neighbours and cloud "
      "metadata addresses";
  if (draft.facts.landlock_abi < kLandlockScopes) text += ", and its abstract unix sockets";
  draft.weakenings.push_back(std::move(text));
  if (!draft.policy.isolation.allow_hosts.empty()) {
    draft.notes.emplace_back("allow_hosts has no effect with network = allow");
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
  plan.weakenings = {"mode = none: there is no boundary; the command can do whatever you can"};
  plan.notes = std::move(draft.notes);
  plan.home = draft.home;
  plan.identity = draft.identity;
  return plan;
}

}  // namespace

base::Result<Plan> make_plan(const policy::Policy& asked, const Facts& facts, const Request& request) {
  BELLJAR_TRY(check_supported(asked));
  policy::Policy policy = asked;
  // An agent must not be told of a boundary that is not there.
  if (policy.isolation.mode == policy::Mode::kNone) policy::keep_inner_sandbox(policy.agent);
  const std::vector<std::string> command = command_of(policy, request);
  BELLJAR_TRY(check_command(command));
  Plan plan;
  plan.mode = policy.isolation.mode;
  plan.network = policy.isolation.network;
  plan.work_folder = facts.work_folder;
  plan.agent = policy.agent.name;
  plan.command = full_command(policy.agent, command);
  BELLJAR_ASSIGN(plan.limits, make_limits(policy.limits, facts));
  Draft draft{.policy = policy, .facts = facts, .request = request};
  if (plan.mode == policy::Mode::kNone) return plan_without_boundary(draft, std::move(plan));

  BELLJAR_TRY(add_mounts(draft, command.front()));
  name_weakenings(draft);
  plan.proxy_port = plan.network == policy::Network::kDeny ? kProxyPort : uint16_t{0};
  if (plan.network == policy::Network::kDeny) {
    BELLJAR_ASSIGN(plan.hosts, make_hosts(policy));
  }
  BELLJAR_ASSIGN(plan.chdir, start_folder(draft));
  BELLJAR_ASSIGN(plan.env, make_environment(draft, plan.chdir, plan.proxy_port));
  add_accounts(draft.table, facts, draft.identity, draft.home, guest_shell(draft));
  add_hosts_file(draft);
  plan.program = facts.program.files.front().path;
  plan.home = draft.home;
  plan.identity = draft.identity;
  plan.hostname = kHostname;
  plan.mounts = draft.table.in_order();
  plan.writable = writable_trees(plan.mounts);
  plan.weakenings = std::move(draft.weakenings);
  plan.notes = std::move(draft.notes);
  return plan;
}

}  // namespace belljar::plan
