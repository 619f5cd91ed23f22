// The launcher on the target: a process of its own, with the standard descriptors that the near end has.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "remote/launch_order.h"

namespace belljar::remote {

// Runs the order in this process and returns its exit code. `report`: where the settlement goes, or -1.
using RunOrder = std::function<int(const LaunchOrder&, int report)>;

struct FarCommand {
  pid_t pid = -1;
  base::Fd pidfd;
  std::array<base::Fd, 3> streams;  // our ends: pipes, or copies of the terminal's master; non-blocking
  base::Fd terminal;                // the master, when there is a terminal
  base::Fd report;                  // a memory file
};

// Forks it. It leads a session of its own, has the terminal as its controlling one, and is killed when this thread
// ends. For a process with one thread, whose SIGCHLD is blocked.
[[nodiscard]] base::Result<FarCommand> start_far_command(const LaunchOrder& order, const RunOrder& run);

}  // namespace belljar::remote
