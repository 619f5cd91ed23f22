// The end of a child process.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <cerrno>

namespace belljar::base {

// Waits for the end of the child `pid`, whatever signals come meanwhile, and reaps it. Its status, as of wait(2); -1,
// which is neither an exit nor a signal, when there is no such child.
inline int reap(pid_t pid) {
  if (pid <= 0) return -1;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

}  // namespace belljar::base
