// PID 1 of every guest.
#include "guest/init.h"

#include <string_view>

// Called by src/guest/runtime.cc.
// `belljar-guest container`: started by a container engine.
extern "C" int guest_main(int count, char** words) {
  const bool container = count > 1 && std::string_view(words[1]) == "container";
  // The environment lies behind the words (psABI, "Process Initialization").
  return container ? belljar::guest::run_container_init(words + count + 1) : belljar::guest::run_init();
}
