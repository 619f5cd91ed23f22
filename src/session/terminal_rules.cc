#include "session/terminal_rules.h"

#include <algorithm>

namespace belljar::session {
namespace {

using Usual = PrivateMode::Usual;

// Not here, among others: 2 (VT52, another grammar), 38 (Tektronix, yet another), 5522 (clipboard), 80 (sixel), 46 and
// 18, 19 (logging, printing), 1001 (a mouse that waits for the program).
constexpr std::array<PrivateMode, kPrivateModes> kModes = {{
    {1, Usual::kOff},         // cursor keys send ESC O
    {3, Usual::kOff},         // 132 columns; with 4 in what `reset` sends
    {4, Usual::kOff},         // smooth scrolling
    {5, Usual::kOff},         // reverse screen
    {6, Usual::kOff},         // origin
    {7, Usual::kOn},          // wrap
    {8, Usual::kUnknown},     // repeat keys
    {9, Usual::kOff},         // mouse, and so on below
    {12, Usual::kUnknown},    // blinking cursor
    {25, Usual::kOn},         // cursor shown
    {45, Usual::kUnknown},    // reverse wrap
    {47, Usual::kOff},        // the other screen
    {66, Usual::kOff},        // keypad
    {69, Usual::kOff},        // left and right margins
    {1000, Usual::kOff},      //
    {1002, Usual::kOff},      //
    {1003, Usual::kOff},      //
    {1004, Usual::kOff},      // focus
    {1005, Usual::kOff},      //
    {1006, Usual::kOff},      //
    {1007, Usual::kUnknown},  // wheel as arrow keys
    {1015, Usual::kOff},      //
    {1016, Usual::kOff},      //
    {1034, Usual::kUnknown},  // meta key, and so on below
    {1035, Usual::kUnknown},  //
    {1036, Usual::kUnknown},  //
    {1039, Usual::kUnknown},  //
    {1045, Usual::kUnknown},  // extended reverse wrap
    {1047, Usual::kOff},      //
    {1048, Usual::kUnknown},  // save the cursor
    {1049, Usual::kOff},      //
    {2004, Usual::kOff},      // bracketed paste
    {2026, Usual::kOff},      // synchronised output
    {2027, Usual::kUnknown},  // grapheme clusters
    {2031, Usual::kOff},      // tell of a change of colours
    {2048, Usual::kOff},      // tell of a change of size
}};

constexpr size_t kLongestTitle = 255;
constexpr size_t kLongestLink = 2083;

bool all_private_modes(const Control& control) {
  return control.count > 0 &&
         std::ranges::all_of(control.values(), [](uint32_t n) { return find_private_mode(n) != nullptr; });
}

bool is_only(const Control& control, std::initializer_list<uint32_t> known) {
  return control.count == 1 && std::ranges::find(known, control.numbers[0]) != known.end();
}

// `CSI … t`, where most numbers move windows or have titles typed back.
bool window_passes(const Control& control) {
  // Sizes: in pixels, of a character, of the text area. Answered by numbers.
  if (is_only(control, {14, 16, 18})) return true;
  // The title, kept for later and taken back.
  const uint32_t what = control.at(0, 0);
  return (what == 22 || what == 23) && control.count <= 2 && control.at(1, 0) <= 2;
}

bool plain_passes(const Control& control) {
  switch (control.last) {
    case 'm':
      return true;
    case 'T':  // with five it would follow the mouse and wait for the program
    case 'I':
    case 'J':
    case 'K':
      return control.count <= 1;
    case 'c':  // which terminal: answered by numbers of its own
      return control.count == 0 || is_only(control, {0, Control::kEmpty});
    case 'n':  // well? and the cursor's place
      return is_only(control, {5, 6});
    case 'h':
    case 'l':
      return is_only(control, {4});
    case 't':
      return window_passes(control);
    case 'r':
    case 's':
      return control.count <= 2;
    default:
      return control.count <= 2 &&
             std::string_view("@ABCDEFGHLMPSXZ`abdefgu").find(control.last) != std::string_view::npos;
  }
}

bool private_passes(const Control& control) {
  switch (control.last) {
    case 'h':
    case 'l':
      return all_private_modes(control);
    case 'J':
    case 'K':
      return control.count <= 1;
    case 'n':  // the cursor's place; dark or light
      return is_only(control, {6, 996});
    case 'u':  // the keyboard's flags, answered by a number
      return control.count == 0;
    case 'm':  // how modified keys are sent, answered by a number
      return is_only(control, {4});
    default:
      return false;
  }
}

bool with_prefix_passes(const Control& control) {
  const std::string_view kind(&control.last, 1);
  if (control.prefix == '>' && kind == "c") return control.count == 0 || is_only(control, {0, Control::kEmpty});
  if (control.prefix == '>' && kind == "m") return control.count <= 2 && control.at(0, 4) == 4;
  if (control.prefix == '>' && kind == "n") return is_only(control, {4});
  return kind == "u" && control.count <= (control.prefix == '=' ? 2U : 1U);
}

bool is_url(std::string_view url) {
  const bool web = url.starts_with("http://") || url.starts_with("https://");
  return web && url.size() <= kLongestLink && std::ranges::all_of(url, [](char c) { return c > 0x20 && c < 0x7F; });
}

// `8;parameters;URL`; without a URL it ends the link.
bool link_passes(std::string_view rest) {
  const size_t end = rest.find(';');
  if (end == std::string_view::npos) return false;
  const std::string_view parameters = rest.substr(0, end);
  const std::string_view url = rest.substr(end + 1);
  const bool harmless = parameters.size() <= 256 && std::ranges::all_of(parameters, [](char c) {
                          return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                 std::string_view("=:-_.").find(c) != std::string_view::npos;
                        });
  return harmless && (url.empty() || is_url(url));
}

bool is_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  return std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '/';
  });
}

// `52;selections;base64`. A `?` in place of the text would have the clipboard typed back.
bool clipboard_passes(std::string_view rest) {
  const size_t end = rest.find(';');
  if (end > 4) return false;  // or none: npos is the greatest number
  const bool known = rest.substr(0, end).find_first_not_of("cps") == std::string_view::npos;
  return known && is_base64(rest.substr(end + 1));
}

bool is_colour(std::string_view text) {
  return !text.empty() && text.size() <= 32 && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '#' || c == ':' ||
           c == '/';
  });
}

// `9;4;state;percentage`: a bar in the task list. The other numbers of ConEmu run programs.
bool progress_passes(std::string_view rest) {
  return rest.starts_with("4;") && rest.size() >= 3 && rest.size() <= 7 &&
         std::ranges::all_of(rest, [](char c) { return (c >= '0' && c <= '9') || c == ';'; });
}

size_t title_size(std::string_view title) {
  if (title.size() <= kLongestTitle) return title.size();
  size_t size = kLongestTitle;
  while (size > 0 && (static_cast<unsigned char>(title[size]) & 0xC0U) == 0x80U) --size;
  return size;
}

}  // namespace

Control read_control(std::string_view text) {
  Control out;
  if (text.empty()) return out;
  out.last = text.back();
  text.remove_suffix(1);
  if (!text.empty() && std::string_view("<=>?").find(text.front()) != std::string_view::npos) {
    out.prefix = text.front();
    text.remove_prefix(1);
  }
  size_t end = 0;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == ';' || text[end] == ':')) ++end;
  out.parameters = text.substr(0, end);
  out.between = text.substr(end);
  if (std::ranges::any_of(out.between, [](char c) { return c < 0x20 || c > 0x2F; })) return out;
  if (out.parameters.empty()) {
    out.well_formed = true;
    return out;
  }
  uint32_t number = Control::kEmpty;
  size_t digits = 0;
  for (size_t i = 0; i <= out.parameters.size(); ++i) {
    const char c = i < out.parameters.size() ? out.parameters[i] : ';';
    if (c >= '0' && c <= '9') {
      if (++digits > 5) return out;
      number = (number == Control::kEmpty ? 0 : number * 10) + static_cast<uint32_t>(c - '0');
      continue;
    }
    if (out.count < Control::kMost) out.numbers[out.count++] = number;
    number = Control::kEmpty;
    digits = 0;
  }
  out.well_formed = true;
  return out;
}

const PrivateMode* find_private_mode(uint32_t number) {
  const auto found = std::ranges::lower_bound(kModes, number, {}, &PrivateMode::number);
  return found != kModes.end() && found->number == number ? &*found : nullptr;
}

std::span<const PrivateMode, kPrivateModes> private_modes() {
  return kModes;
}

bool escape_passes(std::string_view text) {
  // Cursor kept and taken back, keypad, line feeds, tab stops, full reset.
  if (text.size() == 1) return std::string_view("78=>DEHMc").find(text[0]) != std::string_view::npos;
  if (text.size() != 2) return false;
  // Lines of double size and the test picture; character sets G0 to G3. Not `%`, which leaves UTF-8, nor a space, which
  // makes answers 8-bit.
  if (text[0] == '#') return std::string_view("34568").find(text[1]) != std::string_view::npos;
  return std::string_view("()*+").find(text[0]) != std::string_view::npos;
}

bool control_passes(const Control& control) {
  if (!control.well_formed) return false;
  const bool colours = control.last == 'm' && control.prefix == 0 && control.between.empty();
  // Parts of a number, and more numbers than counted: of colours and underlines only.
  if (!colours && (control.count == Control::kMost || control.parameters.find(':') != std::string_view::npos)) {
    return false;
  }
  if (control.between.empty()) {
    if (control.prefix == 0) return plain_passes(control);
    return control.prefix == '?' ? private_passes(control) : with_prefix_passes(control);
  }
  if (control.between == " " && control.prefix == 0) return control.last == 'q' && control.count <= 1;
  if (control.between == "!" && control.prefix == 0) return control.last == 'p' && control.count == 0;
  // Is a mode on? Answered by numbers.
  const bool asks = control.between == "$" && (control.prefix == 0 || control.prefix == '?');
  return asks && control.last == 'p' && control.count == 1;
}

std::optional<std::string_view> command_that_passes(std::string_view text, bool clipboard_write) {
  const size_t end = std::min(text.find(';'), text.size());
  const std::string_view number = text.substr(0, end);
  const bool has_rest = end < text.size();
  const std::string_view rest = has_rest ? text.substr(end + 1) : std::string_view();
  const auto when = [&](bool passes) { return passes ? std::optional(text) : std::nullopt; };
  if (number == "0" || number == "1" || number == "2") {
    if (!has_rest) return std::nullopt;
    return text.substr(0, end + 1 + title_size(rest));
  }
  if (number == "8") return when(link_passes(rest));
  if (number == "9") return when(progress_passes(rest));
  // What are the colours of text and ground? Answered by numbers. To set them could hide text from then on.
  if (number == "10" || number == "11") return when(rest == "?");
  if (number == "12") return when(is_colour(rest));
  if (number == "112") return when(rest.empty());
  if (number == "52") return when(clipboard_write && clipboard_passes(rest));
  return std::nullopt;
}

}  // namespace belljar::session
