// The system-call filter of the guest (seccomp(2), Linux 3.17). The rules are in seccomp_rules.h.
#pragma once

#include <linux/filter.h>

#include <span>

namespace belljar::linux {

// The allowlist for agents as a classic BPF program, made by the compiler: it lies in read-only data and costs nothing
// to build at run time. What the program answers for each call is written down in seccomp_rules.h.
[[nodiscard]] std::span<const sock_filter> agent_filter();

// The same for a guest in which sandboxes may be made (nested = true): namespaces and mounts pass as well.
[[nodiscard]] std::span<const sock_filter> nested_filter();

// Installs `program` for the calling thread and all it will start. Cannot be undone. no_new_privs must be set before,
// or the caller needs CAP_SYS_ADMIN. Other threads of the process stay as they are (no TSYNC): call it while
// single-threaded. Returns 0 or an errno: EACCES without no_new_privs, EINVAL for a program the kernel refuses.
// Uses no heap; safe in a vfork child.
[[nodiscard]] int install_filter(std::span<const sock_filter> program);

// The seccomp mode of the calling thread (PR_GET_SECCOMP): 0 none, 2 filter. Negative: -errno.
[[nodiscard]] int seccomp_mode();

}  // namespace belljar::linux
