// What a test's own scene cannot do without.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace belljar::testing {

// Ends the test with `what` and errno's text unless `done`.
inline void must(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  std::abort();
}

}  // namespace belljar::testing
