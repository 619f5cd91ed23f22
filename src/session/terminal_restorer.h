// Puts the person's terminal right when the launcher cannot do it any more.
#pragma once

#include <sys/types.h>

#include <utility>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::session {

// A process of its own that waits for the launcher's end. Should that come while the terminal is raw (kill -9), it
// gives the terminal the modes that it had at the start, drops what was typed, and ends what a program may have left on
// there. It is forked before the launcher seals itself, leads a session of its own without a terminal, so that no key
// reaches it, and holds two descriptors.
class TerminalRestorer {
 public:
  // For a terminal, whose modes are read now. It stays the caller's.
  [[nodiscard]] static base::Result<TerminalRestorer> start(int terminal);
  TerminalRestorer() = default;
  TerminalRestorer(TerminalRestorer&& other) noexcept
      : line_(std::move(other.line_)), pid_(std::exchange(other.pid_, -1)) {}
  TerminalRestorer& operator=(TerminalRestorer&& other) noexcept {
    end();
    line_ = std::move(other.line_);
    pid_ = std::exchange(other.pid_, -1);
    return *this;
  }
  TerminalRestorer(const TerminalRestorer&) = delete;
  TerminalRestorer& operator=(const TerminalRestorer&) = delete;
  ~TerminalRestorer() { end(); }

  // Whether the terminal is the guest's now, and so to be put right.
  void note(bool raw) const;

 private:
  void end();

  base::Fd line_;
  pid_t pid_ = -1;
};

}  // namespace belljar::session
