// What a guest changed in its copy of a folder of the host's.
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "workspace/guard.h"

namespace belljar::workspace {

// Adds to `out` every file that lies in the upper layer of the overlay: added, changed or removed, by comparison with
// what the host has now. Nothing the guest left is followed. `scratch` is the root of its scratch tmpfs, or -1.
[[nodiscard]] base::Status list_changes(const PrivateCopy& copy, int scratch, const base::Deadline& deadline,
                                        Settled& out);

}  // namespace belljar::workspace
