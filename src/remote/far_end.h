// The end of a link where the command runs.
#pragma once

#include "remote/far_command.h"

namespace belljar::remote {

// Says that it is ready on `out`, takes one order from `in`, has it run, and carries its streams and signals until it
// has ended. When the link ends first, or is silent for as long as the order says, the launcher is told to end
// (SIGTERM), and killed when it does not within ten seconds: it ends its guest either way. Returns 0 when the near end
// was told the exit code. Changes the signal mask of the process, which must have one thread.
int serve_far_end(int in, int out, const RunOrder& run);

}  // namespace belljar::remote
