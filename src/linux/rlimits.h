// Resource limits of a process (setrlimit(2)), set and read back.
#pragma once

#include <cstdint>
#include <span>

namespace belljar::linux {

// RLIMIT_CORE is set to this, not to 0: with a pipe in core_pattern the kernel ignores a limit of 0 and starts the
// handler on the host, outside every namespace; a limit of exactly 1 is the one value it takes as "no" (core(5),
// do_coredump in fs/coredump.c). With a file as pattern 1 byte is too little for a dump.
inline constexpr uint64_t kNoCoreDump = 1;

// Soft and hard limit, both `value`. Units are setrlimit(2)'s: bytes, descriptors, processes. UINT64_MAX is "no limit".
struct ResourceLimit {
  int resource = 0;  // RLIMIT_*
  uint64_t value = 0;
};

// Sets the limits in order and compares each with what the kernel then says. Returns 0 or an errno: EPERM for a value
// above the present hard limit without CAP_SYS_RESOURCE (nothing is clamped), EINVAL for an unknown resource, EIO when
// the value read back differs. Uses no heap; safe in a vfork child.
[[nodiscard]] int set_limits(std::span<const ResourceLimit> limits);

// True when soft and hard limit of every entry are exactly its value.
[[nodiscard]] bool limits_are(std::span<const ResourceLimit> limits);

}  // namespace belljar::linux
