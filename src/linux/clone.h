// Starting a process the way vfork(2) does, but with namespaces, a pidfd and an own stack.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace belljar::linux {

// Runs `entry(argument)` in a new process that shares the caller's memory (CLONE_VM). With CLONE_VFORK in `flags` the
// calling thread sleeps until the child executes another program or ends, so nothing of the caller's memory is copied:
// a third to an eighth of fork's cost. `entry` must not touch the heap, take a lock or return into the caller's frames;
// its result is the child's exit status. Every signal the child has a handler for must be blocked by the caller.
//
// `flags` are CLONE_ bits without the signal; SIGCHLD is the exit signal. With `pidfd` a process descriptor
// (O_CLOEXEC) is stored there. `cgroup` is a cgroup v2 folder for CLONE_INTO_CGROUP (Linux 5.7), or -1.
// Returns the child's pid, or -errno.
int64_t clone_sharing_memory(uint64_t flags, int* pidfd, int cgroup, void* stack, size_t stack_size,
                             int (*entry)(void*), void* argument);

}  // namespace belljar::linux
