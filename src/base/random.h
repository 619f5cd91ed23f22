// Names that nobody can guess.
#pragma once

#include <cstddef>
#include <string>

namespace belljar::base {

// 2 * `bytes` random hex digits; at most 256 bytes, which getrandom(2) gives whole and without an error on Linux 3.17
// and later. Aborts where it does not.
[[nodiscard]] std::string random_hex(size_t bytes);

}  // namespace belljar::base
