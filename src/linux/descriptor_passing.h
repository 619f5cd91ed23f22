// Descriptors over a unix socket (unix(7), SCM_RIGHTS).
#pragma once

#include <cstddef>

#include "base/fd.h"

namespace belljar::linux {

// Sends `size` bytes with `fd` attached (none when fd is -1). No heap; 0 or an errno value.
[[nodiscard]] int send_with_descriptor(int socket, const void* data, size_t size, int fd);

// Receives one message of exactly `size` bytes and at most one descriptor (O_CLOEXEC). A message of another size is
// EPROTO, an end is EPIPE; more descriptors than one are closed and refused. EMFILE: the message is there, and this
// process had no room for its descriptor (recvmsg(2), MSG_CTRUNC). 0 or an errno value.
[[nodiscard]] int receive_with_descriptor(int socket, void* data, size_t size, base::Fd& fd, int flags = 0);

// The same with `count` descriptors, at most 8.
[[nodiscard]] int send_with_descriptors(int socket, const void* data, size_t size, const int* fds, size_t count);

// Receives one message of exactly `size` bytes with exactly `count` descriptors (O_CLOEXEC, the caller's to close). For
// a process about to end when this fails: what came with a message of another kind is left open then. No heap.
[[nodiscard]] int receive_with_descriptors(int socket, void* data, size_t size, int* fds, size_t count);

}  // namespace belljar::linux
