// Any bytes as what comes over a link, cut anywhere: the same frames, and orders that are packed as they were read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "remote/frame.h"
#include "remote/launch_order.h"

namespace {

std::string frames_of(std::string_view bytes, size_t cut) {
  belljar::remote::FrameReader reader;
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += cut) {
    reader.feed(bytes.substr(at, cut));
    while (const auto frame = reader.next()) out += belljar::remote::frame(frame->type, frame->payload);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = frames_of(bytes, size + 1);
  if (!bytes.starts_with(whole) || frames_of(bytes, 1) != whole) std::abort();
  const auto order = belljar::remote::unpack_order(bytes);
  if (!order) return 0;
  const auto again = belljar::remote::unpack_order(belljar::remote::pack(*order));
  if (!again || !(*again == *order)) std::abort();
  return 0;
}
