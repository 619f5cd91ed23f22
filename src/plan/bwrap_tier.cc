#include "plan/bwrap_tier.h"

#include <algorithm>

#include "base/text.h"

namespace belljar::plan {

base::Status check_bwrap(const policy::Policy& policy, const Facts& facts) {
  if (policy.isolation.mode != policy::Mode::kBwrap) return {};
  const BwrapFact& bwrap = facts.bwrap;
  if (!bwrap.fault.empty() || bwrap.path.empty()) {
    const std::string subject = bwrap.path.empty() ? std::string("bwrap") : bwrap.path;
    return base::refuse("use bubblewrap", subject,
                        (bwrap.fault.empty() ? std::string("it was not found") : bwrap.fault) + ", refusing",
                        bwrap.remedy.empty() ? "use mode = \"jail\"" : bwrap.remedy + ", or use mode = \"jail\"");
  }
  if (policy.isolation.transparent == policy::Transparent::kRequired) {
    return base::refuse("isolation.transparent", "required",
                        "bubblewrap leaves no privilege that could redirect connections, refusing",
                        "say transparent = \"auto\", or use mode = \"jail\"");
  }
  if (policy.isolation.nested) {
    return base::refuse("isolation.nested", "true",
                        "in mode = \"bwrap\" nothing bounds the namespaces that are made inside, refusing",
                        "use mode = \"jail\"");
  }
  if (policy.limits.scratch_files) {
    return base::refuse("limits", "scratch_files", "bubblewrap cannot limit the files of a tmpfs, refusing",
                        "leave it out (scratch_bytes holds), or use mode = \"jail\"");
  }
  return {};
}

base::Status fit_to_bwrap(const Facts& facts, Plan& plan) {
  std::string first_private;
  for (Mount& mount : plan.mounts) {
    if (mount.kind == MountKind::kPrivate) {
      if (first_private.empty()) first_private = mount.target;
      mount.kind = MountKind::kReadOnly;
    }
    if (mount.kind != MountKind::kReadOnly || !mount.link) continue;
    return base::refuse("protect", mount.target,
                        "it is a symbolic link, which bubblewrap cannot keep from being replaced, refusing",
                        "add files.approve = [\"" + mount.target.substr(mount.target.rfind('/') + 1) +
                            "\"] if the agent may change it, or use mode = \"jail\"");
  }
  if (!first_private.empty()) {
    plan.notes.push_back("'" + first_private +
                         "' and its like are read-only: bubblewrap makes no private copies for the session");
  }
  plan.limits.scratch_files = 0;
  plan.notes.push_back("made by bubblewrap " + facts.bwrap.version + " (" + facts.bwrap.path +
                       "): scratch is divided equally between its folders, and its number of files is not limited");
  if (facts.bwrap.follows_links) {
    plan.notes.emplace_back(
        "this bubblewrap follows links while it makes mount points (CVE-2026-87766, mended in 0.12.0): run no second "
        "session in this folder meanwhile");
  }
  if (plan.network == policy::Network::kDeny && plan.transparent != policy::Transparent::kOff) {
    plan.notes.emplace_back(
        "programs that know no proxy reach nothing: bubblewrap leaves no privilege that could "
        "redirect their connections");
    plan.transparent = policy::Transparent::kOff;
  }
  plan.bwrap = facts.bwrap.path;
  return {};
}

}  // namespace belljar::plan
