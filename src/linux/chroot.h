// Leaving a chroot, in which the kernel makes no user namespace.
#pragma once

#include "base/error.h"

namespace belljar::linux {

// When the root folder of the calling thread is not that of its mount namespace, gives it a mount namespace of its own
// whose root it is: every path means what it meant, and it is no chroot any more. In a chroot clone(2) with
// CLONE_NEWUSER fails with EPERM, for root too (user_namespaces(7); current_chrooted() in the kernel). The current
// folder is kept. Elsewhere nothing changes. Needs CAP_SYS_ADMIN, CAP_SYS_CHROOT and a mounted /proc, and to be called
// before other threads are started. After an error the process shall end: its root may be the namespace's.
[[nodiscard]] base::Status leave_chroot();

}  // namespace belljar::linux
