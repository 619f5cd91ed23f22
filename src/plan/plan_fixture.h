// Facts of an ordinary merged-usr host, made by hand, for the tests of the plan.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/make_plan.h"

namespace belljar::plan {

inline PathFact path_fact(FileKind kind, std::string real, uid_t uid, mode_t mode = 0755) {
  PathFact out;
  out.kind = kind;
  out.real = std::move(real);
  out.uid = uid;
  out.gid = uid;
  out.mode = mode;
  out.idmap_possible = true;
  return out;
}

inline PathFact through_link(PathFact fact, std::string link, std::string target) {
  fact.links.push_back({std::move(link), std::move(target)});
  return fact;
}

// Alice, user 1000, in /home/alice/work, or root in the same folder of hers.
struct Host {
  Facts facts;
  policy::Policy policy;
  Request request{.command = {"sh", "-c", "true"}};

  explicit Host(bool root = false) {
    facts.root = root;
    facts.uid = facts.gid = root ? 0 : 1000;
    facts.launcher = 4242;
    facts.id_ranges = {{0, UINT32_MAX}};
    facts.home = root ? "/root" : "/home/alice";
    facts.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", facts.home}, {"SHELL", "/bin/bash"}};
    facts.work_folder = "/home/alice/work";
    facts.file_system = "ext4";
    for (const char* name : {"/usr", "/etc", "/opt"}) facts.root_entries[name].kind = RootEntry::Kind::kFolder;
    for (const char* name : {"/bin", "/sbin", "/lib", "/lib64"}) {
      facts.root_entries[name] = {RootEntry::Kind::kLink, "usr" + std::string(name)};
    }
    facts.root_entries["/nix"].kind = RootEntry::Kind::kAbsent;
    facts.etc_secrets = {"/etc/shadow", "/etc/sudoers"};
    facts.devices = {"null", "zero"};
    facts.resolver = path_fact(FileKind::kFile, "/etc/resolv.conf", 0, 0644);
    facts.localtime = through_link(path_fact(FileKind::kFile, "/usr/share/zoneinfo/Etc/UTC", 0, 0644), "/etc/localtime",
                                   "/usr/share/zoneinfo/Etc/UTC");
    facts.passwd = "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000::/home/alice:/bin/bash\n";
    facts.group = "root:x:0:\nalice:x:1000:\n";
    facts.hosts = "127.0.0.1 localhost\n10.0.0.9 intranet\n";
    facts.cpu_topology = true;
    facts.git.kind = GitFact::Kind::kFolder;
    facts.landlock_abi = 7;
    facts.hard_open_files = 20000;
    facts.hard_processes = 60000;
    facts.memory_group.fault = facts.cpu_group.fault = facts.pids_group.fault = "no group can be made";
    folder("/home/alice/work");
    folder("/home/alice");
    folder("/root", 0);
    folder("/usr/local/bin", 0);
    folder("/usr/bin", 0);
    facts.paths["/bin"] = through_link(path_fact(FileKind::kFolder, "/usr/bin", 0), "/bin", "usr/bin");
    facts.paths["/bin/bash"] = through_link(path_fact(FileKind::kFile, "/usr/bin/bash", 0), "/bin", "usr/bin");
    program("/usr/bin/sh", path_fact(FileKind::kFile, "/usr/bin/dash", 0));
  }

  void folder(const std::string& path, uid_t uid = 1000, mode_t mode = 0755) {
    facts.paths[path] = path_fact(FileKind::kFolder, path, uid, mode);
  }
  void file(const std::string& path, uid_t uid = 1000, mode_t mode = 0644) {
    facts.paths[path] = path_fact(FileKind::kFile, path, uid, mode);
  }
  ProgramFile& program(const std::string& path, PathFact fact) {
    facts.program.state = ProgramFact::State::kFound;
    facts.program.files.assign(1, {});
    facts.program.files[0].path = path;
    facts.program.files[0].file = std::move(fact);
    return facts.program.files[0];
  }
  void agent() {
    policy.agent.name = "claude";
    policy.agent.commands = {"claude"};
    policy.agent.config_files = {"~/.claude/login.json"};
    policy.agent.obeyed = {"~/.claude/settings.json", "~/.claude/hooks", "~/.claude/projects/{project}/memory"};
    policy.agent.history = {"~/.claude/projects/{project}", "~/.claude/todos"};
    policy.agent.state_file = "~/.claude.json";
    policy.agent.state_keys = {"userID"};
    policy.agent.credential_env = {"ANTHROPIC_API_KEY"};
    policy.agent.hosts = {"api.anthropic.com"};
    policy.agent.registries = {"registry.npmjs.org"};
  }

  // The same agent, described by a folder that it may write as a whole.
  void agent_of_one_folder() {
    agent();
    policy::Agent& agent = policy.agent;
    for (auto* list : {&agent.config_files, &agent.obeyed, &agent.history, &agent.state_keys}) list->clear();
    agent.state_file.clear();
    agent.config_dirs = {"~/.claude"};
  }

  [[nodiscard]] base::Result<Plan> plan() const { return make_plan(policy, facts, request); }
  // The refusal, or empty when there is none.
  [[nodiscard]] std::string refusal() const {
    const auto made = plan();
    return made ? std::string() : made.error().message();
  }
};

inline const Mount* mount_at(const Plan& plan, std::string_view target) {
  const auto found = std::ranges::find(plan.mounts, target, &Mount::target);
  return found == plan.mounts.end() ? nullptr : &*found;
}

inline const EnvVar* variable(const Plan& plan, std::string_view name) {
  const auto found = std::ranges::find(plan.env, name, &EnvVar::name);
  return found == plan.env.end() ? nullptr : &*found;
}

inline bool any_contains(const std::vector<std::string>& texts, std::string_view part) {
  return std::ranges::any_of(texts, [&](const std::string& text) { return text.contains(part); });
}

}  // namespace belljar::plan
