// What the command gets as 0, 1 and 2.
#pragma once

#include <array>
#include <cstdint>

#include "base/error.h"
#include "base/fd.h"
#include "session/relay.h"
#include "session/terminal_restorer.h"
#include "tiers/jail/launch.h"

namespace belljar::session {

// The guest's ends of 0, 1 and 2, and the launcher's relays for them.
struct Channels {
  tiers::jail::Stdio stdio;
  std::array<base::Fd, 3> guest_ends;
  std::array<Relay, 3> relays;
  bool terminal = false;
  TerminalRestorer restorer;       // with a terminal
  TerminalFilter::Options screen;  // for what is shown on a terminal of the caller's
  base::Fd own_screen;  // of the terminal that is 1, see Relay::own_description(): a sealed launcher opens nothing
};

// Pipes for all that are not the terminal of the guest's own, which it gets when the caller's 0 and 1 are terminals.
// Bit n of `closed`: the caller had n closed, and so will the command. What goes to a terminal is filtered.
// A folder is refused.
[[nodiscard]] base::Result<Channels> open_channels(uint32_t closed, TerminalFilter::Options screen);

}  // namespace belljar::session
