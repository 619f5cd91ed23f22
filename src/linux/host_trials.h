// Doing for real, in a child that goes away, what a launch will do.
#pragma once

#include <string>

#include "linux/host_evidence.h"

namespace belljar::linux {

// Each forks one child (or two) and waits for it. `as_root` makes the namespaces as they are made by root, without a
// user namespace.
[[nodiscard]] Trial try_user_namespace();
[[nodiscard]] Trial try_namespaces(bool as_root);
[[nodiscard]] Trial try_mounts(bool as_root);
[[nodiscard]] Trial try_proc(bool as_root);
[[nodiscard]] Trial try_overlay(bool as_root);
[[nodiscard]] Trial try_redirect(bool as_root);
[[nodiscard]] Trial try_idmap(const std::string& folder);
[[nodiscard]] Trial try_seccomp();

}  // namespace belljar::linux
