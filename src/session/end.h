// How a session ended, from what was seen of it.
#pragma once

#include "session/settlement.h"

namespace belljar::session {

struct End {
  int exec_error = 0;        // errno of executing the command
  int status = -1;           // its wait status, once told
  bool told_to_end = false;  // the launcher was, by a signal
  bool timed_out = false;
};

// Reason, signal and exit code as a shell and timeout(1) give them: the command's own code, 128 and the signal, 124 at
// the deadline, 127 not found, 126 not executable, 125 when nothing is known.
void conclude(const End& end, Settlement& settlement);

}  // namespace belljar::session
