// Where the host has sockets and FIFOs, and what is protected beside the work folder.
#pragma once

#include <string>

#include "base/error.h"
#include "plan/facts.h"
#include "policy/policy.h"
#include "session/walk.h"

namespace belljar::session {

// False for folders that no plan gives to a guest, whatever the policy says (plan/user_mounts.h): nobody has to wait
// until they have been looked through.
[[nodiscard]] bool is_to_be_looked_through(const std::string& folder, const plan::Facts& facts);

// Looks through the trees that the policy names beside the work folder, for sockets and FIFOs, and adds the sockets of
// /proc/net/unix (proc_net(5)) that lie in what a guest may get: those that are bound in this network namespace,
// wherever they are. Adds to `facts.special_files`. Comes after `facts.paths`.
[[nodiscard]] base::Status gather_special_files(const policy::Policy& policy, plan::Facts& facts, Walker& walker);

}  // namespace belljar::session
