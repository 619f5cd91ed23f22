// PID 1 of the guest.
#pragma once

namespace belljar::guest {

// Confines itself, proves it, waits for the launcher's word, starts the agent, reaps, and ends with it. Runs on the
// descriptors named in protocol.h. Returns the exit status of the process; the kernel then ends every other process of
// the guest (pid_namespaces(7)).
[[nodiscard]] int run_init();

// The same as the first process of a container: the descriptors come from the launcher, by the socket that is bound in
// (protocol.h), and the home is filled by init. `environment` ends with a null.
[[nodiscard]] int run_container_init(char** environment);

}  // namespace belljar::guest
