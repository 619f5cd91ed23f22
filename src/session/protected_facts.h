// What programs obey in the work folder, as it is before a launch.
#pragma once

#include "base/error.h"
#include "plan/facts.h"
#include "policy/policy.h"
#include "session/walk.h"

namespace belljar::session {

// Fills protected_paths, git_folders, watched, held and unseen_folders of `facts`, whose work_folder and git are known.
// Nothing for `/`, which is refused as a work folder and would be all of the machine to look at.
[[nodiscard]] base::Status gather_protected(const policy::Policy& policy, plan::Facts& facts, Walker& walker);

}  // namespace belljar::session
