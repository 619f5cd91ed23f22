// Following a path by hand, so that every link on the way is known.
#pragma once

#include <string>

#include "plan/facts.h"

namespace belljar::session {

// The fact of `path`, which must be absolute. At most 40 links are followed, as path_resolution(7) does; what cannot be
// reached, for want of a file or of a permission, is absent. `idmap` asks for idmap_possible as well.
[[nodiscard]] plan::PathFact walk(const std::string& path, bool idmap = false);

// True when the file system at `path` can be attached through an id map by this kernel (FS_ALLOW_IDMAP).
[[nodiscard]] bool can_map_ids(const std::string& path);

// The type of the file system at `path`, for messages: "ext4", "overlay", or its number in hexadecimal.
[[nodiscard]] std::string file_system_name(const std::string& path);

}  // namespace belljar::session
