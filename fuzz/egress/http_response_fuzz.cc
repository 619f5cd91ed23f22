// Any bytes as a response head. The first byte chooses the request's method. What is accepted is sent on as a head that
// the strict reader takes whole, with the same framing.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "egress/forward_head.h"
#include "net/http_head.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belljar;
  if (size == 0) return 0;
  static constexpr std::array<const char*, 3> kMethods = {"GET", "HEAD", "POST"};
  egress::ForwardRequest request;
  request.method = kMethods[data[0] % kMethods.size()];
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  net::HeadScanner scanner;
  const auto length = scanner.scan(text);
  if (!length || *length == 0) return 0;
  const auto head = net::parse_response_head(text.substr(0, *length));
  if (!head) return 0;
  const bool interim = head->status < 200;
  const auto framing = net::response_framing(*head, request.method);
  if (!interim && !framing) return 0;
  const std::string sent = interim ? egress::interim_head(*head) : egress::client_head(request, *head, *framing, true);
  const auto again = net::parse_response_head(sent);
  require(again.has_value());
  require(again->status == head->status);
  if (interim) return 0;
  const auto same = net::response_framing(*again, request.method);
  require(same && same->kind == framing->kind && same->length == framing->length);
  return 0;
}
