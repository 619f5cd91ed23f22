// What a guest may say to the person's terminal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "session/terminal_modes.h"

namespace belljar::session {

// A terminal obeys what it is sent: it hands over its clipboard, takes files, runs what a multiplexer passes through,
// and types answers that whoever reads next takes for the person's. This filter lets text through byte for byte, and of
// control sequences those alone that terminal_rules.h names; all others vanish whole. A sequence is held back until it
// is complete, so the terminal never sees a part of one, wherever the reads split it. Pure, and its memory is bounded
// (4 KiB; 128 KiB when the clipboard may be written). Grammar: ECMA-48 and the VT500 parser, with strings in the forms
// that xterm's ctlseqs lists.
//
// With `utf8`, what is not UTF-8 (RFC 3629) becomes U+FFFD: overlong forms and bare 8-bit controls are read differently
// by different terminals. Controls U+0080 to U+009F count as their ESC forms and come out as those. Without, each of
// these bytes is such a control.
class TerminalFilter {
 public:
  struct Options {
    bool clipboard_write = false;
    bool utf8 = true;
  };
  explicit TerminalFilter(Options options) : options_(options) {}

  // Appends to `out` what may pass of `bytes`; at most three bytes for each, and what was held back.
  void filter(std::string_view bytes, std::string& out);

  // The guest writes no more. Drops what is incomplete, and appends what ends every mode that was left on: the next
  // reader of this terminal is the person's shell.
  void close(std::string& out);
  // Appends what ends every mode that was left on, while the guest may write more later.
  void end_modes(std::string& out) { modes_.end_all(out); }

 private:
  enum class State : uint8_t {
    kText,
    kEscape,        // ESC, perhaps intermediates
    kControl,       // CSI
    kCommand,       // OSC: its text is kept
    kString,        // DCS, SOS, PM, APC, a title as screen takes it: nothing of these may pass
    kStringEscape,  // ESC within one of the two: the first half of ST, or the end of it
    kPalette,       // the Linux console's palette entry, which has no terminator
  };

  void take_byte(unsigned char byte, std::string& out);
  void take_high(unsigned char byte, std::string& out);
  void take_ascii(unsigned char byte, std::string& out);
  void take_graphic(unsigned char byte, std::string& out);
  void take_c0(unsigned char byte, std::string& out);
  void take_c1(unsigned char byte, std::string& out);
  void take_escape(unsigned char byte, std::string& out);
  void take_control(unsigned char byte, std::string& out);
  void take_into_string(std::string_view character);
  void put_character(std::string_view character, std::string& out);
  void put_incomplete(std::string& out);
  void end_command(std::string_view terminator, std::string& out);
  void begin(State state);
  [[nodiscard]] bool in_string() const { return state_ == State::kCommand || state_ == State::kString; }

  Options options_;
  State state_ = State::kText;
  State outer_ = State::kText;       // of the string, in kStringEscape
  bool overlong_ = false;            // more than is kept: it will be dropped
  size_t swallowed_ = 0;             // bytes of the string so far
  std::string sequence_;             // without its introducer
  std::array<char, 4> character_{};  // of UTF-8, incomplete
  size_t character_size_ = 0;
  TerminalModes modes_;
};

}  // namespace belljar::session
