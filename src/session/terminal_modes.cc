#include "session/terminal_modes.h"

#include <algorithm>
#include <array>

namespace belljar::session {
namespace {

constexpr uint32_t kMostPushes = 99;

}  // namespace

void TerminalModes::note_escape(std::string_view text) {
  if (text == "=" || text == ">") keypad_ = text == "=";
  if (text.starts_with('(')) other_letters_ = text != "(B";
  if (text == "c") *this = {};
}

void TerminalModes::note_private(const Control& control) {
  for (const uint32_t number : control.values()) {
    if (number == 47 || number == 1047 || number == 1049) screen_ = control.last == 'h' ? 1 : 0;
    const PrivateMode* mode = find_private_mode(number);
    if (mode == nullptr || mode->usual == PrivateMode::Usual::kUnknown) continue;
    const auto index = static_cast<size_t>(mode - private_modes().data());
    unusual_[index] = (control.last == 'h') != (mode->usual == PrivateMode::Usual::kOn);
  }
}

// The kitty keyboard protocol: `>` keeps the flags and sets new ones, `<` takes them back, `=` sets.
void TerminalModes::note_keyboard(const Control& control) {
  auto& [flags, pushes] = keyboards_[screen_];
  if (control.prefix == '>') pushes = std::min(pushes + 1, kMostPushes);
  if (control.prefix == '<') pushes -= std::min(pushes, std::max(control.at(0, 1), 1U));
  if (control.prefix == '=') flags = control.at(0, 0) != 0;
}

void TerminalModes::end_keyboard(size_t screen, std::string& out) {
  const auto [flags, pushes] = keyboards_[screen];
  if (!flags && pushes == 0) return;
  const bool hidden = screen > screen_;
  if (hidden) out += "\x1b[?1049h";
  if (flags) out += "\x1b[=0u";
  if (pushes > 0) out += "\x1b[<" + std::to_string(pushes) + "u";
  if (hidden) out += "\x1b[?1049l";
}

void TerminalModes::note_control(const Control& control) {
  const bool plain = control.prefix == 0 && control.between.empty();
  switch (control.last) {
    case 'h':
    case 'l':
      if (control.prefix == '?') note_private(control);
      if (plain) insert_ = control.last == 'h';
      break;
    case 'm':
      if (plain) rendition_ = !control.parameters.empty() && control.parameters != "0";
      if (control.prefix == '>') modified_keys_ = control.at(1, 0) != 0;
      break;
    case 'n':
      if (control.prefix == '>') modified_keys_ = false;
      break;
    case 'r':
      margins_ = !control.parameters.empty();
      break;
    case 'q':
      cursor_style_ = control.at(0, 0) != 0;
      break;
    case 'u':
      note_keyboard(control);
      break;
    default:
      break;
  }
}

void TerminalModes::note_command(std::string_view text) {
  if (text.starts_with("8;")) link_ = text.find(';', 2) + 1 != text.size();
  if (text.starts_with("9;4")) progress_ = text.substr(3) != ";0" && !text.substr(3).starts_with(";0;");
  if (text.starts_with("12;")) cursor_colour_ = true;
  if (text.starts_with("112")) cursor_colour_ = false;
}

void TerminalModes::end_all(std::string& out) {
  if (link_) out += "\x1b]8;;\x1b\\";
  if (progress_) out += "\x1b]9;4;0\x1b\\";
  end_keyboard(1, out);
  if (modified_keys_) out += "\x1b[>4;0m";
  for (size_t i = 0; i < kPrivateModes; ++i) {
    if (!unusual_[i]) continue;
    const PrivateMode& mode = private_modes()[i];
    out += "\x1b[?" + std::to_string(mode.number) + (mode.usual == PrivateMode::Usual::kOn ? "h" : "l");
  }
  end_keyboard(0, out);  // now that its screen is shown
  // To take the margins away sends the cursor to the corner.
  if (margins_) out += "\x1b\x37\x1b[r\x1b\x38";
  if (insert_) out += "\x1b[4l";
  if (keypad_) out += "\x1b>";
  if (shifted_) out += "\x0f";
  if (other_letters_) out += "\x1b(B";
  if (cursor_style_) out += "\x1b[0 q";
  if (cursor_colour_) out += "\x1b]112\x1b\\";
  if (rendition_) out += "\x1b[0m";
  *this = {};
}

void TerminalModes::end_unknown(std::string& out) {
  // To end these would clear the screen or move the cursor where they are off already. Of the screens 1047 is enough.
  constexpr std::array<uint32_t, 4> kLeft = {3, 6, 47, 1049};
  TerminalModes any;
  for (size_t i = 0; i < kPrivateModes; ++i) {
    const PrivateMode& mode = private_modes()[i];
    any.unusual_[i] =
        mode.usual != PrivateMode::Usual::kUnknown && std::ranges::find(kLeft, mode.number) == kLeft.end();
  }
  any.keyboards_.fill({.flags = true, .pushes = kMostPushes});
  any.screen_ = 1;
  for (bool TerminalModes::* each :
       {&TerminalModes::shifted_, &TerminalModes::other_letters_, &TerminalModes::keypad_, &TerminalModes::insert_,
        &TerminalModes::rendition_, &TerminalModes::margins_, &TerminalModes::cursor_style_,
        &TerminalModes::cursor_colour_, &TerminalModes::link_, &TerminalModes::progress_,
        &TerminalModes::modified_keys_}) {
    any.*each = true;
  }
  any.end_all(out);
}

}  // namespace belljar::session
