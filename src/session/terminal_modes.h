// What a guest has left on in the person's terminal.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "session/terminal_rules.h"

namespace belljar::session {

// Follows the sequences that pass. A guest that is killed leaves the mouse reported, the cursor hidden, the other
// screen shown: what then comes from the terminal would be typed into the person's shell.
class TerminalModes {
 public:
  void note_shift(bool out) { shifted_ = out; }
  void note_escape(std::string_view text);
  void note_control(const Control& control);
  void note_command(std::string_view text);

  // Appends what ends it all, and nothing when nothing was left on.
  void end_all(std::string& out);
  // Appends what ends anything that may have been left on, for a terminal that nobody has followed.
  static void end_unknown(std::string& out);

 private:
  void note_private(const Control& control);
  void note_keyboard(const Control& control);
  void end_keyboard(size_t screen, std::string& out);

  // What the kitty keyboard protocol has been told on one screen.
  struct Keyboard {
    bool flags = false;
    uint32_t pushes = 0;
  };

  std::bitset<kPrivateModes> unusual_;
  bool shifted_ = false;        // SO
  bool other_letters_ = false;  // G0 is not ASCII
  bool keypad_ = false;
  bool insert_ = false;
  bool rendition_ = false;
  bool margins_ = false;
  bool cursor_style_ = false;
  bool cursor_colour_ = false;
  bool link_ = false;
  bool progress_ = false;
  bool modified_keys_ = false;
  std::array<Keyboard, 2> keyboards_{};  // each screen has its own
  size_t screen_ = 0;                    // 1: the other one is shown
};

}  // namespace belljar::session
