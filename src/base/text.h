// Text that may come from a hostile source, made safe to print.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::base {

// `text` with control characters, DEL, invalid UTF-8 bytes, C1 controls and Unicode direction marks written as
// `\n`, `\t`, `\xNN` or `\u{NNNN}`. Printable text, UTF-8 included, stays as it is. Never fails.
[[nodiscard]] std::string escape(std::string_view text);

// As escape(), in single quotes that a POSIX shell reads back as the same bytes when nothing had to be escaped.
// Words of [A-Za-z0-9_@%+=:,./-] stay bare.
[[nodiscard]] std::string shell_quote(std::string_view word);

[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
[[nodiscard]] std::string join(const std::vector<std::string>& parts, std::string_view separator);

// The candidate nearest to `word` by edit distance, or empty when none is near (more than a third of its letters).
[[nodiscard]] std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

// Of ASCII, whatever the locale.
[[nodiscard]] constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
[[nodiscard]] constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Decimal digits only, no sign, no spaces, no overflow.
[[nodiscard]] bool parse_uint(std::string_view text, uint64_t& out);

// Well-formed UTF-8 (RFC 3629).
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace belljar::base
