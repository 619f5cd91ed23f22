// Any bytes as what a guest prints. The first says how they are cut into reads.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "session/terminal_filter.h"
#include "session/terminal_recogniser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using belljar::session::TerminalFilter;
  if (size == 0) return 0;
  const size_t step = size_t{1} + data[0] % 16U;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, std::min<size_t>(size - 1, 4096));
  std::string whole;
  TerminalFilter(TerminalFilter::Options{}).filter(text, whole);
  std::string parts;
  TerminalFilter filter{TerminalFilter::Options{}};
  for (size_t at = 0; at < text.size(); at += step) filter.filter(text.substr(at, step), parts);
  if (parts != whole) std::abort();
  filter.close(parts);
  if (!belljar::session::forbidden_in(parts).empty()) std::abort();
  if (parts.size() > 3 * text.size() + 1024) std::abort();
  return 0;
}
