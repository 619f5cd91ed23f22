// How deep an engine's answer may be.
#pragma once

#include <cstddef>
#include <string_view>

namespace belljar::tiers::docker {

// False for text that nests deeper than any answer of an engine's: what walks such a document would use up the stack.
[[nodiscard]] inline bool is_shallow(std::string_view json) {
  constexpr size_t kMostDepth = 64;
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMostDepth) return false;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return true;
}

}  // namespace belljar::tiers::docker
