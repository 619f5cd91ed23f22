// What programs of the host obey in a folder that the guest may write.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "plan/draft.h"

namespace belljar::plan {

// Read-only mounts, private copies and masks for the protected paths of the work folder that the guest could write
// otherwise. A path that the policy names under files.write is left as it is. Last of all mounts.
[[nodiscard]] base::Status add_protected(Draft& draft);

// What a person can do where `paths` are too many to be protected.
[[nodiscard]] std::string remedy_for_many(std::span<const ProtectedPath> paths);

// A mount point cannot be renamed, but a folder above it can, mount and all: then anything may come under the old path.
// Where the path is what counts (what a link or git's configuration leads to, what the policy hides or keeps from being
// written) every folder above, up to the tree that the guest may write, becomes a mount of itself. After all mounts.
void hold_in_place(Draft& draft);

}  // namespace belljar::plan
