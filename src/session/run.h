// One supervised launch, from a plan to a settlement.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "plan/plan.h"
#include "session/settlement.h"

namespace belljar::session {

struct RunOptions {
  std::string guest_path;  // of belljar-guest
  // Called once the guest has proved itself and before the agent starts; for `belljar probe`. May be empty.
  std::function<void(const guest::ProbeRecord&)> proved;
  uint32_t closed = 0;  // bit n: the caller's descriptor n of 0, 1, 2 was closed, so the command's shall be
  bool release = true;  // false: end the guest after its proof, the command never starts
};

// Starts the plan's command sealed, carries the caller's 0, 1 and 2 to it, forwards signals, and ends it at the
// deadline. Blocks until every process of the guest is gone. Call on a thread that lives as long: the guest ends with
// it. Changes the calling thread's signal mask for the time. An error means that nothing of the command has run.
[[nodiscard]] base::Result<Settlement> run(const plan::Plan& plan, const RunOptions& options);

}  // namespace belljar::session
