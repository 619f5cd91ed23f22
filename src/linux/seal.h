// One-way switches of a process. All return 0 or an errno, use no heap and are safe in a vfork child (mind that a vfork
// child shares its memory with the parent, and so the dumpable flag, which belongs to the memory).
#pragma once

namespace belljar::linux {

// no_new_privs (prctl(2), Linux 3.5): no execve from here on gains privileges by set-id bits or file capabilities.
// Kept over fork and exec, cannot be unset. Reads it back; EIO when it did not take.
[[nodiscard]] int set_no_new_privs();
[[nodiscard]] bool has_no_new_privs();

// PR_SET_DUMPABLE 0: the process cannot be traced by another without CAP_SYS_PTRACE, its /proc files belong to root and
// it dumps no core. The next execve of a readable program undoes it.
[[nodiscard]] int set_not_dumpable();
[[nodiscard]] bool is_dumpable();

// A new, empty, anonymous session keyring in place of the inherited one (keyctl(2), KEYCTL_JOIN_SESSION_KEYRING), so
// that keys of the launcher's login session are out of reach. ENOSYS where the kernel has no keyrings, and then there
// is nothing to leave behind. EPERM or ENOSYS also inside a container whose filter refuses keyctl: there add_key,
// request_key and keyctl are out of the guest's reach as well.
[[nodiscard]] int new_session_keyring();

}  // namespace belljar::linux
