// The caller's terminal while a guest has one of its own.
#pragma once

#include <termios.h>

namespace belljar::session {

// Puts a terminal into raw mode, so that every key reaches the guest's own terminal, and back. Restores when it goes.
class RawTerminal {
 public:
  RawTerminal() = default;
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal() { restore(); }

  // `terminal` stays the caller's. Does nothing when it is no terminal.
  void enter(int terminal);
  // Back to what it was, and drops what was typed and not read: it was meant for the guest, not for the shell.
  void restore();

 private:
  int terminal_ = -1;
  termios before_{};
};

// Gives `guest` the window size of `terminal` (ioctl_tty(2), TIOCSWINSZ); the kernel tells the guest by SIGWINCH.
void copy_window_size(int terminal, int guest);

}  // namespace belljar::session
