// What cannot be meant together.
#pragma once

#include "base/error.h"
#include "policy/layer.h"

namespace belljar::policy {

// Refuses settings of `layer` that contradict each other, naming both places. Used for each file alone, and for all
// layers together before they become a policy.
[[nodiscard]] base::Status check_consistent(const PolicyLayer& layer);

}  // namespace belljar::policy
