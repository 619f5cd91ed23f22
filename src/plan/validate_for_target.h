// Whether a tier and a target can hold what a policy says, before anything starts. Pure.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "policy/policy.h"

namespace belljar::plan {

enum class TargetKind : uint8_t {
  kLocal,
  kSsh,
  kMachine,  // a disposable machine: the seam for a later version
};

// An interactive launch, or one that was queued.
enum class LaunchKind : uint8_t { kSession, kTask };

// Refuses, with what would work, what the target cannot honour. A disposable machine is itself the boundary: a session
// that asks for another one in it is refused as redundant.
[[nodiscard]] base::Status validate_for_target(const policy::Policy& policy, TargetKind target, LaunchKind launch);

// The policy that holds on that target: for a task on a disposable machine the isolation is not applied, since the
// machine is it; everywhere else the policy as it is.
[[nodiscard]] policy::Policy policy_on(policy::Policy policy, TargetKind target, LaunchKind launch);

}  // namespace belljar::plan
