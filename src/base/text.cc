#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <numeric>

namespace belljar::base {
namespace {

// The length of the well-formed UTF-8 sequence at `text[i]` and its code point, or 0 (RFC 3629, section 4).
size_t utf8_sequence(std::string_view text, size_t i, char32_t& out) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  size_t length = 0;
  char32_t value = 0;
  if (first < 0x80) {
    out = first;
    return 1;
  }
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2, value = first & 0x1FU;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3, value = first & 0x0FU;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4, value = first & 0x07U;
  } else {
    return 0;
  }
  if (i + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0U) != 0x80U) return 0;
    value = (value << 6U) | (byte(i + k) & 0x3FU);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return 0;
  out = value;
  return length;
}

// C1 controls, line and paragraph separators, and the marks that reorder what a person reads.
bool must_escape(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0x061C || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) || c >= 0xE0000;
}

void append_escaped(std::string& out, char32_t c) {
  std::array<char, 16> buffer{};
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c < 0x100) {
    std::snprintf(buffer.data(), buffer.size(), "\\x%02x", static_cast<unsigned>(c));
    out += buffer.data();
  } else {
    std::snprintf(buffer.data(), buffer.size(), "\\u{%x}", static_cast<unsigned>(c));
    out += buffer.data();
  }
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    char32_t c = 0;
    const size_t length = utf8_sequence(text, i, c);
    if (length == 0) {
      append_escaped(out, static_cast<unsigned char>(text[i]));
      ++i;
      continue;
    }
    if (must_escape(c)) {
      append_escaped(out, c);
    } else {
      out.append(text.substr(i, length));
    }
    i += length;
  }
  return out;
}

std::string shell_quote(std::string_view word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  std::string out = "'";
  for (const char c : escape(word)) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  out.reserve(static_cast<size_t>(std::ranges::count(text, separator)) + 1);
  for (;;) {
    const size_t at = text.find(separator);
    out.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i + 1;
      for (size_t k = 0; k < candidate.size(); ++k) {
        const size_t cost = diagonal + (word[i] == candidate[k] ? 0 : 1);
        diagonal = row[k + 1];
        row[k + 1] = std::min({row[k] + 1, row[k + 1] + 1, cost});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

bool parse_uint(std::string_view text, uint64_t& out) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t size = first < 0x80U             ? 1
                        : first >> 5U == 0b110U   ? 2
                        : first >> 4U == 0b1110U  ? 3
                        : first >> 3U == 0b11110U ? 4
                                                  : 0;
    if (size == 0 || i + size > text.size()) return false;
    uint32_t code = size == 1 ? first : first & (0xffU >> (size + 1));
    for (size_t j = 1; j < size; ++j) {
      const auto next = static_cast<unsigned char>(text[i + j]);
      if (next >> 6U != 0b10U) return false;
      code = code << 6U | (next & 0x3fU);
    }
    constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kLeast[size] || code > 0x10ffffU || (code >= 0xd800U && code <= 0xdfffU)) return false;
    i += size;
  }
  return true;
}

}  // namespace belljar::base
