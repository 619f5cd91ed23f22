// Taking over a folder that a guest made, as plain files and folders.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace belljar::workspace {

// Bounds of one settlement; each copy uses some up.
struct CopyBudget {
  uint64_t bytes = 0;
  uint64_t files = 0;     // and folders
  uint64_t left_out = 0;  // for want of budget, or because they were neither file nor folder
};

// Copies `inside`, below the guest's folder `home`, to `path` of the host: regular files and folders, at most 16
// levels. What the host has stays as it is, and nothing is followed on either side. New ones have the owner of the
// folder they are in, and mode 0600 or 0700. `skip` says, of a path below `home`, that it is not to be taken. True when
// anything was copied.
[[nodiscard]] base::Result<bool> take_over(int home, const std::string& inside, const std::string& path,
                                           CopyBudget& budget, const std::function<bool(std::string_view)>& skip);

}  // namespace belljar::workspace
