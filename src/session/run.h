// One supervised launch, from a plan to a settlement.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "linux/cgroup.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "session/engine_facts.h"
#include "session/settlement.h"
#include "tiers/jail/keeper.h"
#include "workspace/settled.h"

namespace belljar::session {

// What the relay to the hook has that stands in no plan.
struct HookSecrets {
  std::string token;        // goes along with each callback; empty: the value of the plan's token_env, if it names one
  std::string authorities;  // of HookTls::start()
};

struct RunOptions {
  std::string guest_path;  // of belljar-guest
  // Called once the guest has proved itself and before the agent starts; for `belljar probe`. May be empty.
  std::function<void(const guest::ProbeRecord&)> proved;
  std::string state_folder;            // see state_path()
  std::vector<workspace::Work> works;  // to be done after those of the plan
  // The file for the events of the way out, open for reading and appending; invalid: none is kept.
  base::Fd audit;
  HookSecrets hook;
  std::string launch_record;  // what `belljar reload` has to know of the launch; empty: it is not offered
  // Keeps a host that a person always allows, for the project, and where (AskerOptions::keep, kept_in).
  std::function<base::Status(const std::string& rule)> keep_answer;
  std::string answers_kept_in;
  uint32_t closed = 0;  // bit n: the caller's descriptor n of 0, 1, 2 was closed, so the command's shall be
  bool release = true;  // false: end the guest after its proof, the command never starts
};

// The id of a session: random, 16 hex digits.
[[nodiscard]] std::string new_session_id();

// With an id of its own and the time of now.
[[nodiscard]] Settlement new_settlement();

// A guest without a plan yet. Nothing of the command has run, or will, when it goes unused.
struct HeadStart {
  std::string session;           // from new_session_id(); empty: run() makes one
  linux::CgroupGrounds grounds;  // where the guest's cgroup can be made
  linux::Cgroup group;           // what of it has to be there before the guest
  std::unique_ptr<tiers::jail::Keeper> keeper;
  EngineLook engine;  // what gather_facts() has asked, for a plan with Mode::kDocker
};

// Begins to make the guest that a launch under `policy` will need, on a thread, while the caller plans. Without a
// keeper when there is nothing to begin with; run() then does it all, and says why should it be impossible. `session`
// is its id.
[[nodiscard]] HeadStart begin(const policy::Policy& policy, const linux::CgroupGrounds& grounds,
                              const std::string& session);

// Starts the plan's command sealed, carries the caller's 0, 1 and 2 to it, forwards signals, and ends it at the
// deadline. Blocks until every process of the guest is gone. Changes the calling thread's signal mask for the time. An
// error means that nothing of the command has run.
[[nodiscard]] base::Result<Settlement> run(const plan::Plan& plan, RunOptions options, HeadStart head);

}  // namespace belljar::session
