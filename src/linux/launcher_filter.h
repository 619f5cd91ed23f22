// The system-call filter of the launcher itself. The rules are in launcher_rules.h.
#pragma once

#include <linux/filter.h>

#include <span>

namespace belljar::linux {

[[nodiscard]] std::span<const sock_filter> launcher_filter();

// Installs `program` for every thread of the process at once (SECCOMP_FILTER_FLAG_TSYNC, Linux 3.17), and with it
// no_new_privs, which must be set for the calling thread. Returns 0 or an errno; ESRCH when a thread could not follow,
// and then none has it.
[[nodiscard]] int install_filter_on_all_threads(std::span<const sock_filter> program);

}  // namespace belljar::linux
