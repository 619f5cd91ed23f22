#include "guest/mountinfo.h"

namespace belljar::guest {
namespace {

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

// The kernel writes space, tab, newline, backslash and `#` as three octal digits (fs/proc_namespace.c, mangle()).
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Takes the first part of `rest`, which ends before `end`, off it. No list is made: init reads this at every launch.
std::string_view take(std::string_view& rest, char end) {
  const size_t at = rest.find(end);
  const std::string_view out = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return out;
}

MountEntry parse_line(std::string_view line) {
  for (int i = 0; i < 4; ++i) take(line, ' ');
  const std::string_view path = take(line, ' ');
  const std::string_view options = take(line, ' ');
  // Then a list of optional tags that a lone hyphen ends; the file system type follows it.
  while (!line.empty() && take(line, ' ') != "-") {
  }
  const std::string_view type = take(line, ' ');
  const std::string_view source = take(line, ' ');
  MountEntry entry;
  if (source.empty() || line.empty()) return entry;
  if (path.find('\\') == std::string_view::npos) {
    entry.path = path;
  } else {
    entry.path = unescape(path);
  }
  entry.options = options;
  entry.type = type;
  return entry;
}

}  // namespace

bool MountEntry::has(std::string_view option) const {
  for (std::string_view rest = options; !rest.empty();) {
    if (take(rest, ',') == option) return true;
  }
  return false;
}

std::vector<MountEntry> parse_mountinfo(std::string_view text) {
  std::vector<MountEntry> out;
  out.reserve(64);
  while (!text.empty()) {
    const std::string_view line = take(text, '\n');
    if (!line.empty()) out.push_back(parse_line(line));
  }
  return out;
}

}  // namespace belljar::guest
