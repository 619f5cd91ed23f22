#include "plan/container_plan.h"

#include <algorithm>
#include <utility>

#include "base/path.h"
#include "plan/agent_files.h"
#include "plan/identity.h"
#include "plan/protected_mounts.h"
#include "plan/special_files.h"
#include "plan/user_mounts.h"

namespace belljar::plan {
namespace {

void add_scratch(Draft& draft, const char* target) {
  draft.table.add({.kind = MountKind::kScratch, .target = target, .writable = true, .reason = "scratch"});
}

// An engine mounts where a link leads, makes no overlay over a host's folder, and its root is not ours to put links in.
void without_what_engines_cannot(Draft& draft) {
  for (const Mount& mount : draft.table.in_order()) {
    if (mount.kind == MountKind::kLink) {
      draft.notes.push_back("'" + mount.target + "' is a link on this host, and not in the container: use '" +
                            mount.source + "'");
      draft.table.remove(mount.target);
    } else if (mount.link) {
      draft.notes.push_back("'" + mount.target +
                            "' is a link that programs obey: the agent can replace it, and what "
                            "it makes is put away at the end only");
      draft.table.remove(mount.target);
    } else if (mount.kind == MountKind::kPrivate) {
      Mount read_only = mount;
      read_only.kind = MountKind::kReadOnly;
      draft.table.add(std::move(read_only));
    }
  }
}

}  // namespace

base::Status check_container(const policy::Policy& policy, const Facts& facts) {
  if (facts.engine.fault) return std::unexpected(*facts.engine.fault);
  if (facts.engine.image_id.empty()) {
    return base::refuse("isolation.mode", "docker", "the container engine was not asked for the image, refusing");
  }
  if (policy.isolation.transparent == policy::Transparent::kRequired) {
    return base::refuse("isolation.transparent", "required", "mode = \"docker\" has no such way, refusing",
                        "use mode = \"jail\", or say transparent = \"auto\"");
  }
  if (policy.files.allow_home) {
    return base::refuse("files.allow_home", "true", "with mode = \"docker\" the home is a tmpfs of its own, refusing",
                        "use mode = \"jail\", or start belljar in the folder of a project");
  }
  if (policy.limits.processes) {
    return base::refuse("limits", "processes",
                        "it would count the person's own processes with mode = \"docker\", refusing",
                        "say limits.pids, which the engine holds");
  }
  return {};
}

base::Status add_container_mounts(Draft& draft) {
  for (const char* target : {"/tmp", "/var/tmp", "/dev/shm"}) add_scratch(draft, target);
  add_home(draft);
  BELLJAR_TRY(add_work_folder(draft));
  BELLJAR_TRY(add_agent_files(draft));
  BELLJAR_TRY(add_policy_files(draft));
  BELLJAR_TRY(add_git(draft));
  BELLJAR_TRY(hide_own_folders(draft));
  BELLJAR_TRY(add_hidden(draft));
  BELLJAR_TRY(add_protected(draft));
  BELLJAR_TRY(add_special_files(draft));
  without_what_engines_cannot(draft);
  return {};
}

void add_container_accounts(Draft& draft) {
  const std::string name = user_name(draft.facts, draft.identity);
  const std::string uid = std::to_string(draft.identity.guest_uid);
  const std::string gid = std::to_string(draft.identity.guest_gid);
  const bool writable_home = draft.home.find_first_of(":\n") == std::string::npos;
  draft.table.add({.kind = MountKind::kFile,
                   .target = "/etc/passwd",
                   .source = "root:x:0:0:root:/root:/bin/sh\n" + name + ":x:" + uid + ":" + gid +
                             "::" + (writable_home ? draft.home : "/") +
                             ":/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
                   .reason = "the guest's own user"});
  draft.table.add({.kind = MountKind::kFile,
                   .target = "/etc/group",
                   .source = "root:x:0:\n" + name + ":x:" + gid + ":\nnogroup:x:65534:\n",
                   .reason = "the guest's own group"});
}

void add_image_environment(const Facts& facts, std::vector<EnvVar>& env) {
  for (const std::string& text : facts.engine.image_env) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos || equals == 0) continue;
    const auto found = std::ranges::find(env, name, &EnvVar::name);
    if (found == env.end()) {
      env.push_back({name, text.substr(equals + 1)});
    } else if (name == "PATH") {
      found->value = text.substr(equals + 1);
    }
  }
  std::ranges::sort(env, {}, &EnvVar::name);
}

}  // namespace belljar::plan
