// A session without a boundary (tier none).
#pragma once

#include "base/error.h"
#include "plan/plan.h"
#include "session/run.h"
#include "session/settlement.h"

namespace belljar::session {

// Starts the plan's command as it is and watches over it as run() does over a guest: signals, deadline, the end of all
// that it started, settlement. `settlement` has its session already.
[[nodiscard]] base::Status run_unsealed(const plan::Plan& plan, const RunOptions& options,
                                        const linux::CgroupGrounds& grounds, Settlement& settlement);

}  // namespace belljar::session
