// A terminal of Belljar's own.
#pragma once

#include "base/error.h"
#include "base/fd.h"

namespace belljar::remote {

struct TerminalPair {
  base::Fd master;  // non-blocking
  base::Fd slave;
};

// Both ends of a new terminal (pty(7)), which is nobody's controlling one yet.
[[nodiscard]] base::Result<TerminalPair> open_terminal_pair(std::string_view operation);

}  // namespace belljar::remote
