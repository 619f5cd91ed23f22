// The limits of a session that a cgroup holds, and what came of all its limits.
#pragma once

#include <sys/resource.h>

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "linux/cgroup.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "session/facts.h"
#include "session/settlement.h"
#include "workspace/settled.h"

namespace belljar::session {

// Where the policy names a limit that needs a group and `launcher` has no ground for one: has the systemd of this user
// make one, a delegated scope, into which it moves this process. With `only_look` it is told that there is one to ask.
// What systemd says instead is the fault of the grounds. Before any other process or thread is started.
void ask_systemd_where_needed(const policy::Policy& policy, bool only_look, Launcher& launcher);

// What cgroup v2 has to make before the clone, for a session of this name; empty where only v1 has the controllers, or
// none. The limits come later, with the plan.
[[nodiscard]] linux::Cgroup begin_group(const std::string& session, const linux::CgroupGrounds& grounds);

// The group with the plan's limits, made now unless begun. Empty when the plan names none.
[[nodiscard]] base::Result<linux::Cgroup> finish_group(linux::Cgroup begun, const plan::Plan& plan,
                                                       const std::string& session, const linux::CgroupGrounds& grounds);

// Removes the group at the end: the launcher is sealed by then. Also when the agent never started.
[[nodiscard]] workspace::Work removal_of(const linux::Cgroup& group);
inline constexpr const char* kGroupRemoval = "cgroup";
// The same from its record.
[[nodiscard]] base::Result<workspace::Settled> remove_recorded_group(std::string_view record);

// After the guest's end: what it used and which limits it met, by the kernel's counters and not by its exit code.
// `scratch` is the guest's, as it left it, and `more_scratch` what else of it there is in file systems of their own.
// Opens nothing, when the group's counters are open.
void settle_limits(Settlement& settlement, const plan::Plan& plan, const linux::Cgroup& group, const rusage& used,
                   int scratch, std::span<const base::Fd> more_scratch = {});

}  // namespace belljar::session
