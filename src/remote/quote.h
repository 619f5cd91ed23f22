// Words for the shell of another machine. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belljar::remote {

// One word that a POSIX shell (POSIX.1-2017, XCU 2.2) reads back as these bytes, whatever they are; csh and fish too,
// when no backslash, newline or `!` is in it. A NUL, which no word can hold, is refused.
[[nodiscard]] base::Result<std::string> quote(std::string_view word);

// The same for a path; `~` and what lies below it begin with `"$HOME"`, for that machine to expand.
[[nodiscard]] base::Result<std::string> quote_path(std::string_view path);

// `exec /bin/sh -c SCRIPT sh WORDS`, to be given to a login shell. `words` are quoted already.
[[nodiscard]] base::Result<std::string> shell_command(std::string_view script, const std::vector<std::string>& words);

// A path of this machine as it is called on another: below the home it begins with `~`, which is expanded there.
[[nodiscard]] std::string portable_path(std::string_view path, std::string_view home);

}  // namespace belljar::remote
