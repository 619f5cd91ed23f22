#include "session/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace belljar::session {

void RawTerminal::enter(int terminal, const TerminalRestorer* restorer) {
  if (::tcgetattr(terminal, &before_) != 0) return;
  terminal_ = terminal;
  restorer_ = restorer;
  if (restorer_ != nullptr) restorer_->note(true);
  termios raw = before_;
  ::cfmakeraw(&raw);
  ::tcsetattr(terminal, TCSADRAIN, &raw);
}

void RawTerminal::restore() {
  if (terminal_ < 0) return;
  // Not TCSAFLUSH, which waits until the terminal has taken all that was shown.
  ::tcsetattr(terminal_, TCSANOW, &before_);
  ::tcflush(terminal_, TCIFLUSH);
  terminal_ = -1;
  if (restorer_ != nullptr) restorer_->note(false);
}

bool speaks_utf8(const char* all, const char* ctype, const char* lang) {
  for (const char* value : {all, ctype, lang}) {
    if (value == nullptr || *value == '\0') continue;
    std::string_view encoding(value);
    const size_t dot = encoding.find('.');
    if (dot == std::string_view::npos) return encoding == "C" || encoding == "POSIX";
    encoding = encoding.substr(dot + 1);
    encoding = encoding.substr(0, encoding.find('@'));
    std::string plain;
    for (const char c : encoding) {
      if (c != '-') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return plain == "utf8";
  }
  return true;
}

void copy_window_size(int terminal, int guest) {
  winsize size{};
  if (::ioctl(terminal, TIOCGWINSZ, &size) == 0) ::ioctl(guest, TIOCSWINSZ, &size);
}

}  // namespace belljar::session
