#pragma once

#include <cstdlib>

// Ends the fuzzer with a finding.
inline void require(bool holds) {
  if (!holds) std::abort();
}
