// Capabilities of the calling thread (capabilities(7)), dropped and read back.
#pragma once

#include <cstdint>

namespace belljar::linux {

// The five sets, one bit a capability: bit n is capability number n (linux/capability.h).
struct CapabilitySets {
  uint64_t effective = 0;
  uint64_t permitted = 0;
  uint64_t inheritable = 0;
  uint64_t bounding = 0;
  uint64_t ambient = 0;

  [[nodiscard]] bool empty() const { return (effective | permitted | inheritable | bounding | ambient) == 0; }
};

// Empties all five sets: bounding first, which needs CAP_SETPCAP in the own user namespace, then ambient, then the
// rest. Covers whatever capabilities the running kernel has. Returns 0 or an errno; EPERM when the bounding set holds
// something and CAP_SETPCAP is missing, in which case nothing but the bounding set may have changed.
// Uses no heap; safe in a vfork child.
[[nodiscard]] int drop_capabilities();

// Empties the sets that count without an execve: effective, permitted, inheritable, ambient. The bounding set stays;
// with no_new_privs and no execve there is nothing that it bounds. Needs no capability; costs two calls. Returns 0 or
// an errno.
[[nodiscard]] int drop_held_capabilities();

// Reads the five sets back from the kernel. Returns 0 or an errno. Uses no heap.
[[nodiscard]] int read_capabilities(CapabilitySets& out);

}  // namespace belljar::linux
