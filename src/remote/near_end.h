// The end of a link where the person is.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "remote/launch_order.h"
#include "remote/ssh.h"
#include "session/channels.h"

namespace belljar::remote {

struct LinkEnd {
  int code = 125;
  std::string report;  // the settlement, when the order asks for it
};

// Waits for the far end to be ready. False when the programs are not there, or are not those; they must be copied.
[[nodiscard]] base::Result<bool> await_far_end(Ssh& ssh, std::string_view destination);

// Has it do `order`, and carries the caller's 0, 1 and 2, its signals and its terminal, as a local launch would, until
// the command has ended. `order.streams` and the window are filled in here. An error when the link is lost, by its end
// or by a silence of `order.link_seconds`.
[[nodiscard]] base::Result<LinkEnd> serve_near_end(Ssh ssh, std::string_view destination, LaunchOrder order,
                                                   uint32_t closed, session::TerminalFilter::Options screen,
                                                   base::Deadline latest = {});

}  // namespace belljar::remote
