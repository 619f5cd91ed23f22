// What a task's container may take: part of what a request captures.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace belljar::tiers::docker::task {

// Pinned for every task's container; bytes, and inodes.
struct Ceilings {
  uint64_t memory_bytes = uint64_t{4} << 30U;  // its tmpfs count in it
  uint64_t cpu_percent = 0;                    // of one core; 0: two, or as many as the host has
  uint64_t pids = 512;
  uint64_t open_files = 16384;
  uint64_t home_bytes = uint64_t{256} << 20U;
  uint64_t home_files = 20'000;
  uint64_t temporary_bytes = uint64_t{1} << 30U;
  uint64_t temporary_files = 200'000;
  uint64_t state_bytes = uint64_t{256} << 20U;
  uint64_t state_files = 20'000;
  uint64_t shared_bytes = uint64_t{64} << 20U;
};

enum class Unit : uint8_t { kBytes, kPercent, kCount };

// One of them, and what it may be.
struct Bound {
  uint64_t Ceilings::* field;
  const char* name;  // its option's: "--memory"
  const char* what;  // for a person
  Unit unit;
  uint64_t least;
  uint64_t most;
};
[[nodiscard]] std::span<const Bound> bounds();

// Refuses the first that is out of its bounds, by name and bounds.
[[nodiscard]] base::Status check(const Ceilings& ceilings);

// All of them, as a part of a captured request.
void pack(std::string& out, const Ceilings& ceilings);

}  // namespace belljar::tiers::docker::task
