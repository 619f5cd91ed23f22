// The check the guest runs on itself before the agent's first instruction.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "guest/config.h"
#include "guest/protocol.h"

namespace belljar::guest {

// What only init can know: taken before its filter shut the calls that tell.
struct Observed {
  int64_t session_keyring = 0;
  // In a container: /proc/self/status as the engine made it, before init added its own; and what lay in its
  // scratch.
  std::string status_at_start;
  std::string left_in_scratch;
  std::vector<std::string_view> environment;  // in a container: init's own
  int landlock_write_error = 0;               // of creating a file where Landlock must not let us; 0: it was created
  int user_namespace_error = 0;  // of making one before the filter was there, when another program made the guest
  std::array<int, 4> own_descriptors{-1, -1, -1, -1};  // init's own besides 0, 1, 2; any other is one too many
};

// Reads back, from /proc and by calls that must fail, everything the launch promised, and stops at the first
// difference. Run by init after it confined itself; needs no privilege.
[[nodiscard]] ProbeRecord run_probe(const Config& config, const Observed& observed);

}  // namespace belljar::guest
