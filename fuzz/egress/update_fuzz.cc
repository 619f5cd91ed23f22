// Any bytes as an update of the rules, as a TLS server's answer and as what follows it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "egress/rule_feed.h"
#include "net/tls_answer.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belljar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto update = egress::decode_rules(text)) {
    const std::string again = egress::encode(*update);
    const auto back = egress::decode_rules(again);
    require(back && egress::encode(*back) == again && back->rules == update->rules);
  }
  const net::TlsAnswer answer = net::judge_tls_answer(text);
  for (size_t n = 0; n < size && n < net::kMostTlsAnswer; ++n) {
    const net::TlsAnswer early = net::judge_tls_answer(text.substr(0, n));
    require(early == net::TlsAnswer::kNeedMore || early == answer);
  }
  net::SecondHelloReader whole;
  net::SecondHelloReader pieces;
  const net::HelloVerdict verdict = whole.feed(text);
  net::HelloVerdict last = net::HelloVerdict::kNeedMore;
  for (size_t n = 0; n < size && last == net::HelloVerdict::kNeedMore; ++n) last = pieces.feed(text.substr(n, 1));
  require(last == verdict && pieces.hello().host() == whole.hello().host());
  return 0;
}
