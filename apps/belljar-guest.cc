// PID 1 of every guest.
#include "guest/init.h"

// Called by src/guest/runtime.cc.
extern "C" int guest_main() {
  return belljar::guest::run_init();
}
