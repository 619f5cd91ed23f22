// One supervised launch, from a plan to a settlement.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "session/settlement.h"
#include "tiers/jail/keeper.h"

namespace belljar::session {

struct RunOptions {
  std::string guest_path;  // of belljar-guest
  // Called once the guest has proved itself and before the agent starts; for `belljar probe`. May be empty.
  std::function<void(const guest::ProbeRecord&)> proved;
  uint32_t closed = 0;  // bit n: the caller's descriptor n of 0, 1, 2 was closed, so the command's shall be
  bool release = true;  // false: end the guest after its proof, the command never starts
};

// A guest without a plan yet. Nothing of the command has run, or will, when it goes unused.
using HeadStart = std::unique_ptr<tiers::jail::Keeper>;

// Begins to make the guest that a launch under `policy` will need, on a thread, while the caller plans. Empty when
// there is nothing to begin with; run() then does it all, and says why should it be impossible.
[[nodiscard]] HeadStart begin(const policy::Policy& policy);

// Starts the plan's command sealed, carries the caller's 0, 1 and 2 to it, forwards signals, and ends it at the
// deadline. Blocks until every process of the guest is gone. Changes the calling thread's signal mask for the time. An
// error means that nothing of the command has run.
[[nodiscard]] base::Result<Settlement> run(const plan::Plan& plan, const RunOptions& options, HeadStart head = {});

}  // namespace belljar::session
