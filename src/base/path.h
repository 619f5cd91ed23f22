// Paths as text, and opening them so that a link in between cannot redirect the result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::base {

// An absolute path without `.`, `..`, empty components or a trailing slash, worked out on the text alone.
// Empty when `path` is not absolute, holds a NUL byte, or climbs above `/`.
[[nodiscard]] std::string normal_path(std::string_view path);

// True when `path` is `ancestor` or below it. Both in normal form.
[[nodiscard]] bool is_within(std::string_view path, std::string_view ancestor);

[[nodiscard]] std::string parent_of(std::string_view path);
[[nodiscard]] std::string_view name_of(std::string_view path);

// openat2(2) (Linux 5.6) with O_CLOEXEC added. `resolve` is a set of RESOLVE_ flags.
[[nodiscard]] Result<Fd> open_resolved(int directory, const std::string& path, uint64_t flags, uint64_t resolve);

// The real path behind an open descriptor, from /proc/self/fd. An error when the file has been unlinked.
[[nodiscard]] Result<std::string> real_path(int fd);

// realpath(3) as a Result: every link resolved; the path must exist.
[[nodiscard]] Result<std::string> real_path(const std::string& path);

}  // namespace belljar::base
