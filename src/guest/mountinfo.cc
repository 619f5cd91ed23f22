#include "guest/mountinfo.h"

#include "base/text.h"

namespace belljar::guest {
namespace {

bool is_octal(char c) { return c >= '0' && c <= '7'; }

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

MountEntry parse_line(std::string_view line) {
  const std::vector<std::string_view> fields = base::split(line, ' ');
  MountEntry entry;
  if (fields.size() < 10) return entry;
  // Field 7 on is a list of optional tags that a lone hyphen ends; the file system type follows it.
  size_t hyphen = 6;
  while (hyphen < fields.size() && fields[hyphen] != "-") ++hyphen;
  if (hyphen + 1 >= fields.size()) return entry;
  entry.path = unescape(fields[4]);
  entry.options = fields[5];
  entry.type = fields[hyphen + 1];
  return entry;
}

}  // namespace

bool MountEntry::has(std::string_view option) const {
  for (const std::string_view each : base::split(options, ',')) {
    if (each == option) return true;
  }
  return false;
}

std::vector<MountEntry> parse_mountinfo(std::string_view text) {
  std::vector<MountEntry> out;
  for (const std::string_view line : base::split(text, '\n')) {
    if (!line.empty()) out.push_back(parse_line(line));
  }
  return out;
}

}  // namespace belljar::guest
