// Any bytes as the start of a TLS stream. However they are cut into segments, the verdict and the name are the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/tls_hello.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belljar::net;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  HelloReader whole;
  const HelloVerdict verdict = whole.feed(text);
  for (const size_t step : {size_t{1}, size_t{5}, size_t{1000}}) {
    HelloReader cut;
    for (size_t at = 0; at < size; at += step) cut.feed(text.substr(at, step));
    require(cut.verdict() == verdict && cut.host() == whole.host());
  }
  require((verdict == HelloVerdict::kHost) == !whole.host().empty());
  require((verdict == HelloVerdict::kMalformed || verdict == HelloVerdict::kNotTls) == !whole.problem().empty());
  return 0;
}
