// Whether a sandbox can be made inside this guest.
#pragma once

namespace belljar::guest {

// Makes one, a child in a user, mount and pid namespace of its own that mounts a proc, and ends it. What such a sandbox
// needs is refused by kernels in three places: user namespaces (sysctls and security modules), mounts (landlock), and a
// new proc while the old one has anything mounted on it (mount_too_revealing() in fs/namespace.c). 0 or an errno.
[[nodiscard]] int try_inner_sandbox();

}  // namespace belljar::guest
