// Any bytes as the two SOCKS messages. A message is whole at one length and at no shorter one, whatever follows it, and
// what speaks TLS or HTTP is told from its first bytes once and for all.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "egress/first_bytes.h"
#include "net/socks.h"
#include "policy/host_rule.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belljar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  egress::Speech speech = egress::Speech::kUnknown;
  for (size_t n = 0; n <= size && n < 64; ++n) {
    const egress::Speech now = egress::first_speech(text.substr(0, n));
    require(speech == egress::Speech::kUnknown || now == speech);
    speech = now;
  }
  if (const auto methods = net::read_socks_methods(text); methods && methods->length > 0) {
    require(methods->length <= size);
    for (size_t n = 0; n < methods->length; ++n) require(net::read_socks_methods(text.substr(0, n))->length == 0);
  }
  const auto request = net::read_socks_request(text);
  if (!request || request->length == 0) return 0;
  require(request->length <= size && request->port != 0 && !request->host.empty());
  for (size_t n = 0; n < request->length; ++n) require(net::read_socks_request(text.substr(0, n))->length == 0);
  if (const auto host = policy::canonical_host(request->host)) require(*policy::canonical_host(*host) == *host);
  return 0;
}
