// What of the agent's home outlives the session, as a piece of work for its end.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "tiers/jail/program.h"
#include "workspace/kept_files.h"
#include "workspace/settled.h"

namespace belljar::session {

// Facts::agent_folder of a command that starts in `start`: by the marker that holds its path, else the first name that
// has none.
[[nodiscard]] std::optional<std::string> agent_folder(const policy::Agent& agent, const std::string& home,
                                                      const std::string& start);

// Makes the plan's folder marker, and reads what the guest gets copies of. An error when one cannot be copied.
[[nodiscard]] base::Result<workspace::KeptFiles> open_agent_files(const plan::Plan& plan);

// The contents of the plan's copies, for the launch.
[[nodiscard]] tiers::jail::Copies copies_of(const plan::Plan& plan, const workspace::KeptFiles& files);

// Makes the plan's cache folders that are not there, as the owner of what the agent writes.
[[nodiscard]] base::Status make_caches(const plan::Plan& plan);

inline constexpr const char* kAgentFilesWork = "agent-files";

// Takes over what the guest has left in its home.
[[nodiscard]] workspace::Work agent_files_work(const plan::Plan& plan, const tiers::jail::Program& program,
                                               workspace::KeptFiles files);

// What can still be done from the work's record when the guest's home is gone: nothing that must not be in the history
// stays there.
[[nodiscard]] base::Result<workspace::Settled> redo_agent_files(std::string_view record);

}  // namespace belljar::session
