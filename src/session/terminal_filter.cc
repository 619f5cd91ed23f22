#include "session/terminal_filter.h"

#include <algorithm>
#include <utility>

#include "session/terminal_rules.h"

namespace belljar::session {
namespace {

constexpr unsigned char kBel = 0x07;
constexpr unsigned char kShiftOut = 0x0E;
constexpr unsigned char kShiftIn = 0x0F;
constexpr unsigned char kCancel = 0x18;
constexpr unsigned char kSubstitute = 0x1A;
constexpr unsigned char kEscapeByte = 0x1B;
constexpr unsigned char kDelete = 0x7F;
constexpr unsigned char kStringTerminator = 0x9C;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

constexpr size_t kLongestControl = 256;
constexpr size_t kLongestCommand = 4096;
constexpr size_t kLongestClipboard = 131072;
// A string that goes on and on is given up: what comes then is text. Enough for the images that are dropped.
constexpr size_t kLongestSwallowed = size_t{4} << 20U;

// BEL to CR, and the two shifts: those that move the cursor, ring or choose a character set. All others do nothing on a
// terminal, or make it answer (ENQ), or start a file transfer (CAN, which is ZMODEM's escape).
constexpr bool passes_as_control(unsigned char byte) {
  return byte >= kBel && byte <= kShiftIn;
}

constexpr bool is_plain(unsigned char byte) {
  return (byte >= 0x20 && byte < kDelete) || (byte >= kBel && byte < kShiftOut);
}

// How many bytes the character has that starts so, 0 when none does (RFC 3629, section 4).
constexpr size_t length_of(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

// Whether `byte` may follow `lead` as the byte number `at` of its character.
constexpr bool continues(unsigned char lead, size_t at, unsigned char byte) {
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (at == 1) {
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  }
  return byte >= low && byte <= high;
}

}  // namespace

void TerminalFilter::filter(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    if (state_ == State::kText && character_size_ == 0) {
      const auto* end = std::ranges::find_if_not(bytes, [](char c) { return is_plain(static_cast<unsigned char>(c)); });
      const auto run = static_cast<size_t>(end - bytes.begin());
      out.append(bytes.substr(0, run));
      bytes.remove_prefix(run);
      if (bytes.empty()) return;
    }
    take_byte(static_cast<unsigned char>(bytes.front()), out);
    bytes.remove_prefix(1);
  }
}

void TerminalFilter::close(std::string& out) {
  begin(State::kText);
  character_size_ = 0;
  modes_.end_all(out);
}

void TerminalFilter::begin(State state) {
  state_ = state;
  sequence_.clear();
  overlong_ = false;
  swallowed_ = 0;
}

void TerminalFilter::take_byte(unsigned char byte, std::string& out) {
  if (byte < 0x80) {
    if (character_size_ > 0) put_incomplete(out);
    take_ascii(byte, out);
  } else if (options_.utf8) {
    take_high(byte, out);
  } else if (byte <= 0x9F) {
    take_c1(byte, out);
  } else {
    const char character = static_cast<char>(byte);
    put_character({&character, 1}, out);
  }
}

void TerminalFilter::take_high(unsigned char byte, std::string& out) {
  if (character_size_ > 0) {
    const auto lead = static_cast<unsigned char>(character_[0]);
    if (continues(lead, character_size_, byte)) {
      character_[character_size_++] = static_cast<char>(byte);
      if (character_size_ < length_of(lead)) return;
      const size_t size = std::exchange(character_size_, 0);
      if (lead == 0xC2 && byte <= 0x9F) return take_c1(byte, out);
      return put_character({character_.data(), size}, out);
    }
    put_incomplete(out);
  }
  if (length_of(byte) == 0) return put_character(kReplacement, out);
  character_[0] = static_cast<char>(byte);
  character_size_ = 1;
}

void TerminalFilter::put_incomplete(std::string& out) {
  character_size_ = 0;
  put_character(kReplacement, out);
}

// No sequence but a string has anything else than ASCII in it: a terminal gives up the sequence and shows the
// character.
void TerminalFilter::put_character(std::string_view character, std::string& out) {
  if (state_ == State::kStringEscape) begin(State::kText);
  if (in_string()) return take_into_string(character);
  if (state_ != State::kText) begin(State::kText);
  out.append(character);
}

void TerminalFilter::take_into_string(std::string_view character) {
  swallowed_ += character.size();
  if (swallowed_ > kLongestSwallowed) return begin(State::kText);
  if (state_ == State::kString || overlong_) return;
  const size_t most = options_.clipboard_write ? kLongestClipboard : kLongestCommand;
  if (sequence_.size() + character.size() > most) {
    overlong_ = true;
    sequence_.clear();
    return;
  }
  sequence_.append(character);
}

void TerminalFilter::take_ascii(unsigned char byte, std::string& out) {
  if (byte == kCancel || byte == kSubstitute) return begin(State::kText);
  if (state_ == State::kStringEscape) {
    if (byte == '\\') {
      state_ = outer_;
      return end_command("\x1b\\", out);
    }
    begin(State::kEscape);
  }
  if (byte == kEscapeByte) {
    if (!in_string()) return begin(State::kEscape);
    outer_ = state_;
    state_ = State::kStringEscape;
  } else if (byte < 0x20) {
    take_c0(byte, out);
  } else if (byte != kDelete) {
    take_graphic(byte, out);
  }
}

// Within an escape or control sequence a terminal obeys it at once and goes on with the sequence.
void TerminalFilter::take_c0(unsigned char byte, std::string& out) {
  if (byte == kBel && in_string()) return end_command("\a", out);
  if (in_string() || !passes_as_control(byte)) return;
  if (state_ == State::kPalette) begin(State::kText);
  if (byte == kShiftOut || byte == kShiftIn) modes_.note_shift(byte == kShiftOut);
  out += static_cast<char>(byte);
}

// ESC and a byte 0x40 to 0x5F are the 7-bit form of a control 0x80 to 0x9F (ECMA-48, section 5.3).
void TerminalFilter::take_c1(unsigned char byte, std::string& out) {
  if (byte == kStringTerminator && in_string()) return end_command("\x1b\\", out);
  begin(State::kEscape);
  take_escape(static_cast<unsigned char>(byte - 0x40), out);
}

void TerminalFilter::take_graphic(unsigned char byte, std::string& out) {
  const char character = static_cast<char>(byte);
  switch (state_) {
    case State::kText:
      out += character;
      break;
    case State::kEscape:
      take_escape(byte, out);
      break;
    case State::kControl:
      take_control(byte, out);
      break;
    case State::kCommand:
      // The Linux console's `ESC ] R` and `ESC ] P nrrggbb` have no terminator (console_codes(4)).
      if (sequence_.empty() && !overlong_ && (byte == 'R' || byte == 'P')) {
        begin(byte == 'R' ? State::kText : State::kPalette);
        break;
      }
      [[fallthrough]];
    case State::kString:
      take_into_string({&character, 1});
      break;
    case State::kPalette:
      sequence_ += character;
      if (sequence_.size() == 7) begin(State::kText);
      break;
    case State::kStringEscape:
      break;  // take_ascii() has left it
  }
}

void TerminalFilter::take_escape(unsigned char byte, std::string& out) {
  if (byte < 0x30) {
    if (sequence_.size() < kLongestControl) sequence_ += static_cast<char>(byte);
    return;
  }
  if (sequence_.empty()) {
    switch (byte) {
      case '[':
        return begin(State::kControl);
      case ']':
        return begin(State::kCommand);
      case 'P':  // DCS
      case 'X':  // SOS
      case '^':  // PM
      case '_':  // APC
      case 'k':  // a title, for screen and tmux
        return begin(State::kString);
      default:
        break;
    }
  }
  sequence_ += static_cast<char>(byte);
  if (escape_passes(sequence_)) {
    modes_.note_escape(sequence_);
    out.append("\x1b").append(sequence_);
  }
  begin(State::kText);
}

void TerminalFilter::take_control(unsigned char byte, std::string& out) {
  if (sequence_.size() < kLongestControl) {
    sequence_ += static_cast<char>(byte);
  } else {
    overlong_ = true;
  }
  if (byte < 0x40) return;
  const Control control = read_control(sequence_);
  if (!overlong_ && control_passes(control)) {
    modes_.note_control(control);
    out.append("\x1b[").append(sequence_);
  }
  begin(State::kText);
}

void TerminalFilter::end_command(std::string_view terminator, std::string& out) {
  if (state_ == State::kCommand && !overlong_) {
    if (const auto text = command_that_passes(sequence_, options_.clipboard_write)) {
      modes_.note_command(*text);
      out.append("\x1b]").append(*text).append(terminator);
    }
  }
  begin(State::kText);
}

}  // namespace belljar::session
