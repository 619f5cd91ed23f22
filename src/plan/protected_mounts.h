// What programs of the host obey in a folder that the guest may write.
#pragma once

#include "base/error.h"
#include "plan/draft.h"

namespace belljar::plan {

// Read-only mounts, private copies and masks for the protected paths of the work folder that the guest could write
// otherwise. A path that the policy names under files.write is left as it is. Last of all mounts.
[[nodiscard]] base::Status add_protected(Draft& draft);

}  // namespace belljar::plan
