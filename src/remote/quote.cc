#include "remote/quote.h"

#include "base/path.h"
#include "base/text.h"

namespace belljar::remote {

base::Result<std::string> quote(std::string_view word) {
  if (word.contains('\0')) return base::refuse("quote for the target", word, "it holds a NUL byte, refusing");
  // Within single quotes every byte but the quote itself is one of the word's.
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

base::Result<std::string> quote_path(std::string_view path) {
  if (path != "~" && !path.starts_with("~/")) return quote(path);
  BELLJAR_ASSIGN(const std::string rest, quote(path.substr(1)));
  return "\"$HOME\"" + rest;
}

base::Result<std::string> shell_command(std::string_view script, const std::vector<std::string>& words) {
  BELLJAR_ASSIGN(const std::string quoted, quote(script));
  std::string out = "exec /bin/sh -c " + quoted + " sh";
  for (const std::string& word : words) out += " " + word;
  return out;
}

std::string portable_path(std::string_view path, std::string_view home) {
  if (home.size() < 2 || !base::is_within(path, home)) return std::string(path);
  return "~" + std::string(path.substr(home.size()));
}

}  // namespace belljar::remote
