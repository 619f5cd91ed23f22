// What a check of the probe has found.
#pragma once

#include <string>

namespace belljar::guest {

// What was found where something else was expected; all is well when `expected` is empty.
struct Finding {
  std::string subject;
  std::string expected;
  std::string found;
  int code = 0;
};

}  // namespace belljar::guest
