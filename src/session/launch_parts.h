// Steps that every sealed launch has, whatever made its guest.
#pragma once

#include <string>

#include "base/error.h"
#include "plan/plan.h"
#include "session/asker.h"
#include "session/live_rules.h"
#include "session/run.h"
#include "session/settlement.h"
#include "session/settler.h"
#include "session/terminal_filter.h"
#include "session/way_out.h"
#include "tiers/jail/launch.h"

namespace belljar::session {

// While init confines and proves itself. From here on nothing can be opened or started: what comes later has its
// descriptors already, or is the settler's.
[[nodiscard]] base::Status seal_launcher(tiers::jail::Guest& guest, WayOut& way_out, const plan::Plan& plan);

// Without one the session takes no other rules, and is not weaker for it.
[[nodiscard]] RuleDoor open_door(const plan::Plan& plan, const RunOptions& options, const std::string& session);

// Beside belljar-guest.
[[nodiscard]] std::string tls_program(const RunOptions& options);

// One that does not ask, unless the plan says so and there is a terminal. Before seal_launcher().
[[nodiscard]] base::Result<Asker> start_asker(const plan::Plan& plan, const RunOptions& options);

// The guest is gone.
void settle(Settler& settler, Settlement& settlement);

// What the terminal of this process is, and what the plan lets the guest do to it.
[[nodiscard]] TerminalFilter::Options screen_of(const plan::Plan& plan);

}  // namespace belljar::session
