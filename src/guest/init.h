// PID 1 of the guest.
#pragma once

namespace belljar::guest {

// Confines itself, proves it, waits for the launcher's word, starts the agent, reaps, and ends with it. Runs on the
// descriptors named in protocol.h. Returns the exit status of the process; the kernel then ends every other process of
// the guest (pid_namespaces(7)).
[[nodiscard]] int run_init();

}  // namespace belljar::guest
