// A folder of this user's that nobody else can write.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::base {

// Opens the folder `path` for reading, after making what is missing of it (0700). A refusal when it is no folder,
// belongs to somebody else, or others may write it: what lies in it is obeyed. `operation` is what the error says was
// tried.
[[nodiscard]] Result<Fd> open_private_folder(const std::string& path, std::string_view operation);

}  // namespace belljar::base
