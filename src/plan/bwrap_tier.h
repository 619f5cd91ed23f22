// What the bwrap tier can hold of a policy, and what a plan for it looks like.
#pragma once

#include "base/error.h"
#include "plan/facts.h"
#include "plan/plan.h"
#include "policy/policy.h"

namespace belljar::plan {

// Refuses, naming what would work, a host without a bubblewrap that the tier can be built on and what of the policy
// bubblewrap cannot hold. A policy of another mode passes.
[[nodiscard]] base::Status check_bwrap(const policy::Policy& policy, const Facts& facts);

// Turns a plan for the jail into one for bubblewrap: private copies become read-only, since it is without overlays
// before 0.11, and files of scratch are not counted. Each difference is noted. Refuses a protected path that is a
// symbolic link: bubblewrap cannot mount on one.
[[nodiscard]] base::Status fit_to_bwrap(const Facts& facts, Plan& plan);

}  // namespace belljar::plan
