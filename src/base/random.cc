#include "base/random.h"

#include <sys/random.h>

#include <cstdlib>
#include <string_view>

namespace belljar::base {

std::string random_hex(size_t bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string raw(bytes, '\0');
  if (::getrandom(raw.data(), raw.size(), 0) != static_cast<ssize_t>(raw.size())) std::abort();
  std::string out;
  for (const char c : raw) {
    out += kDigits[static_cast<unsigned char>(c) >> 4U];
    out += kDigits[static_cast<unsigned char>(c) & 15U];
  }
  return out;
}

}  // namespace belljar::base
