// Any bytes as a chunked body. The first byte chooses how they are cut. However they are cut, the copy is the same, and
// the copy of the copy is itself.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http_body.h"
#include "require.h"

namespace {

using namespace belljar::net;

struct Copy {
  std::string text;
  bool done = false;
  bool refused = false;
  size_t taken = 0;
};

Copy copy(std::string_view in, size_t step, ChunkedCopier::Extensions extensions) {
  ChunkedCopier copier(extensions, ChunkedCopier::Output::kChunked);
  Copy out;
  while (out.taken < in.size() && !copier.done()) {
    const auto taken = copier.copy(in.substr(out.taken, step), out.text, SIZE_MAX);
    if (!taken) {
      out.refused = true;
      return out;
    }
    out.taken += *taken;
    if (*taken == 0) break;
  }
  out.done = copier.done();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto extensions = (data[0] & 1U) != 0 ? ChunkedCopier::Extensions::kDrop : ChunkedCopier::Extensions::kRefuse;
  const size_t step = size_t{1} + (data[0] >> 1U);
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const Copy whole = copy(text, size, extensions);
  const Copy cut = copy(text, step, extensions);
  require(whole.refused == cut.refused && whole.done == cut.done);
  if (!whole.done) return 0;
  require(whole.taken == cut.taken && whole.text == cut.text);
  const Copy again = copy(whole.text, step, ChunkedCopier::Extensions::kRefuse);
  require(again.done && again.taken == whole.text.size() && again.text == whole.text);
  return 0;
}
