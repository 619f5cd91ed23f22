// The check the guest runs on itself before the agent's first instruction.
#pragma once

#include <array>

#include "guest/config.h"
#include "guest/protocol.h"

namespace belljar::guest {

// What only init can know: taken before its filter shut the calls that tell.
struct Observed {
  int64_t session_keyring = 0;
  int landlock_write_error = 0;  // of creating a file where Landlock must not let us; 0: it was created
  std::array<int, 4> own_descriptors{-1, -1, -1, -1};  // init's own besides 0, 1, 2; any other is one too many
};

// Reads back, from /proc and by calls that must fail, everything the launch promised, and stops at the first
// difference. Run by init after it confined itself; needs no privilege.
[[nodiscard]] ProbeRecord run_probe(const Config& config, const Observed& observed);

}  // namespace belljar::guest
