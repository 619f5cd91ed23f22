// The token of a session that the person's control host reads from a file.
#pragma once

#include <string>

#include "base/error.h"

namespace belljar::cli {

// Makes a token of 256 random bits, in hex, and writes it as one line to the file at `path` (absolute), in place of an
// earlier one. The file is made for its owner alone. Refused: a link on the way, a file of somebody else's or that
// others may open, and one that holds anything but such a token, since it would be lost.
[[nodiscard]] base::Result<std::string> make_hook_token(const std::string& path);

}  // namespace belljar::cli
