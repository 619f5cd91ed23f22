// Policy and facts to a plan. Pure: the same input gives the same plan, and nothing is touched.
#pragma once

#include "base/error.h"
#include "plan/facts.h"
#include "plan/plan.h"
#include "policy/policy.h"

namespace belljar::plan {

// The port of the way out on the guest's loopback. Fixed: each guest has a network namespace of its own.
inline constexpr uint16_t kProxyPort = 61080;

// Everything a launch needs, or the refusal: what the policy contradicts, what this version or the host cannot hold,
// what would open the guest. A refusal's hint is the remedy; when the command is at fault the operation is
// "find the command" and `code` ENOENT (not found) or EACCES (not executable).
[[nodiscard]] base::Result<Plan> make_plan(const policy::Policy& policy, const Facts& facts, const Request& request);

}  // namespace belljar::plan
