// Starting the command inside the guest.
#pragma once

#include <sys/types.h>

#include "guest/config.h"

namespace belljar::guest {

// Starts the command of `config` as a child of init, in a session (pipes) or a foreground process group (terminal) of
// its own, with the default action for every signal and none blocked. `terminal` is the slave of the guest's pty or -1.
// Returns its pid, or -errno of the execve(2) that failed; ENOENT means not found, else it cannot be executed.
[[nodiscard]] pid_t start_agent(const Config& config, int terminal);

}  // namespace belljar::guest
