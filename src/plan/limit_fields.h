// The limits of a plan, one by one, for whoever writes them down.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/plan.h"

namespace belljar::plan {

// Calls `take(name, value)` with each: the name that plan and settlement give it, and a std::optional<uint64_t>.
template <class Take>
void each_limit(const ResourceLimits& limits, Take take) {
  const auto set = [](uint64_t value) { return std::optional<uint64_t>(value); };
  take("memory_bytes", limits.memory_bytes);
  take("cpu_percent", limits.cpu_percent);
  take("pids", limits.pids);
  take("processes", set(limits.processes));
  take("open_files", set(limits.open_files));
  take("file_bytes", limits.file_bytes);
  take("scratch_bytes", set(limits.scratch_bytes));
  take("scratch_files", set(limits.scratch_files));
  take("wall_seconds", limits.wall_seconds);
}

}  // namespace belljar::plan
