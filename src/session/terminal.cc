#include "session/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace belljar::session {

void RawTerminal::enter(int terminal) {
  if (::tcgetattr(terminal, &before_) != 0) return;
  terminal_ = terminal;
  termios raw = before_;
  ::cfmakeraw(&raw);
  ::tcsetattr(terminal, TCSADRAIN, &raw);
}

void RawTerminal::restore() {
  if (terminal_ < 0) return;
  ::tcsetattr(terminal_, TCSAFLUSH, &before_);
  terminal_ = -1;
}

void copy_window_size(int terminal, int guest) {
  winsize size{};
  if (::ioctl(terminal, TIOCGWINSZ, &size) == 0) ::ioctl(guest, TIOCSWINSZ, &size);
}

}  // namespace belljar::session
