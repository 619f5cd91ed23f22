// Which control sequences of a guest reach the person's terminal. docs/terminal.md has the table and the reasons.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace belljar::session {

// A control sequence (ECMA-48, section 5.4) without its introducer, taken apart.
struct Control {
  static constexpr size_t kMost = 32;

  bool well_formed = false;
  char prefix = 0;              // `<`, `=`, `>`, `?`, or 0
  std::string_view parameters;  // digits, `;` and `:`
  std::string_view between;     // intermediates
  char last = 0;                // says what it does
  size_t count = 0;             // of numbers; more than kMost are not counted
  std::array<uint32_t, kMost> numbers{};

  [[nodiscard]] std::span<const uint32_t> values() const { return {numbers.data(), count}; }
  // The number at `index`; an absent or empty one is `otherwise`.
  [[nodiscard]] uint32_t at(size_t index, uint32_t otherwise) const {
    return index < count && numbers[index] != kEmpty ? numbers[index] : otherwise;
  }

  static constexpr uint32_t kEmpty = UINT32_MAX;
};

// `text` ends with the byte that says what it does. The result points into it. Numbers of more than five digits are not
// well-formed: no terminal has so many columns, and some have overflowed.
[[nodiscard]] Control read_control(std::string_view text);

// A private mode (`CSI ? n h`) that a guest may turn on and off.
struct PrivateMode {
  uint16_t number;
  enum class Usual : uint8_t { kOff, kOn, kUnknown } usual;
};
[[nodiscard]] const PrivateMode* find_private_mode(uint32_t number);
inline constexpr size_t kPrivateModes = 36;
[[nodiscard]] std::span<const PrivateMode, kPrivateModes> private_modes();

// Of an escape sequence, its intermediates and its last byte.
[[nodiscard]] bool escape_passes(std::string_view text);
[[nodiscard]] bool control_passes(const Control& control);
// The text of an operating system command as it may pass: as it is, or a title cut to 255 bytes; or nothing. `text` has
// no control characters in it.
[[nodiscard]] std::optional<std::string_view> command_that_passes(std::string_view text, bool clipboard_write);

}  // namespace belljar::session
