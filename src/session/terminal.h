// The caller's terminal while a guest has one of its own.
#pragma once

#include <termios.h>

#include "session/terminal_restorer.h"

namespace belljar::session {

// Puts a terminal into raw mode, so that every key reaches the guest's own terminal, and back. Restores when it goes.
class RawTerminal {
 public:
  RawTerminal() = default;
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal() { restore(); }

  // `terminal` stays the caller's. Does nothing when it is no terminal.
  // `restorer`, when there is one, is told and must live as long.
  void enter(int terminal, const TerminalRestorer* restorer);
  // Back to what it was, and drops what was typed and not read: it was meant for the guest, not for the shell.
  void restore();

 private:
  int terminal_ = -1;
  const TerminalRestorer* restorer_ = nullptr;
  termios before_{};
};

// Whether the terminal reads UTF-8, told by the values of LC_ALL, LC_CTYPE and LANG (null: not set): unless the first
// of them that says anything names another encoding, or a language without one (`de_DE`), which stands for an old one
// in most systems' lists. In the C locale nothing is said, and terminals of today read UTF-8.
[[nodiscard]] bool speaks_utf8(const char* all, const char* ctype, const char* lang);

// Gives `guest` the window size of `terminal` (ioctl_tty(2), TIOCSWINSZ); the kernel tells the guest by SIGWINCH.
void copy_window_size(int terminal, int guest);

}  // namespace belljar::session
