// What is known of a session that may have work left, in a file that outlives launcher and settler.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "workspace/settled.h"

namespace belljar::session {

// In the state folder, as SESSION.pending, from before the agent starts until the work is done. The settler and the
// launcher each hold a shared lock of it (flock(2)): who gets the exclusive one knows that both are gone.
struct Marker {
  std::string session;
  std::string started;                 // UTC, RFC 3339
  plan::Plan plan;                     // what a settlement tells of it: the rest is empty
  std::vector<workspace::Work> works;  // name and record only
  pid_t guest = 0;                     // init's pid as the launcher saw it; 0 when the agent was never let go
  uint64_t guest_started = 0;          // proc_pid_stat(5), field 22: with the pid it names one process of this boot
};

inline constexpr std::string_view kPending = ".pending";

[[nodiscard]] std::string encode(const Marker& marker);
// An error for the bytes of another version of Belljar, too.
[[nodiscard]] base::Result<Marker> decode_marker(std::string_view bytes);
inline constexpr size_t kMostMarker = size_t{16} << 20U;

// Writes pid and start time into the marker behind `file`. 0 or an errno.
[[nodiscard]] int note_guest(int file, pid_t guest);
// The start time of a process that there is; 0 when there is none.
[[nodiscard]] uint64_t start_time_of(pid_t pid);

}  // namespace belljar::session
