// Any bytes as a request head. However they are cut, the scanner says the same; and what is accepted is sent on as a
// head that has one Host and the same framing, and that the strict reader takes whole.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "egress/forward_head.h"
#include "net/http_head.h"
#include "net/http_target.h"
#include "policy/host_rule.h"
#include "require.h"

namespace {

using namespace belljar;

// The length of the head, 0 when it is not whole, or minus the status of its refusal.
long scan(std::string_view text, size_t step, const net::HeadLimits& limits = {}) {
  net::HeadScanner scanner(limits);
  for (size_t size = step;; size += step) {
    const auto length = scanner.scan(text.substr(0, size));
    if (!length) return -length.error().status;
    if (*length > 0 || size >= text.size()) return static_cast<long>(*length);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const long length = scan(text, size + 1);
  require(scan(text, 1) == length);
  require(scan(text, 7) == length);
  if (length <= 0) return 0;
  const auto head = net::parse_request_head(text.substr(0, static_cast<size_t>(length)));
  if (!head) return 0;
  require(net::is_token(head->method));
  const auto target = net::parse_absolute_target(head->target, head->method);
  if (!target) return 0;
  const auto host = policy::canonical_host(target->authority.host);
  auto request = egress::read_request(*head);
  if (!host || !request) return 0;
  request->origin_form = target->origin_form;
  request->host = *host;
  request->port = target->authority.port.value_or(80);

  const std::string sent = egress::upstream_head(*request, *head);
  // It may have a field more than a client may send.
  constexpr net::HeadLimits kMost;
  const net::HeadLimits more{2 * kMost.start_line, 2 * kMost.total, 2 * kMost.fields};
  require(scan(sent, sent.size() + 1, more) == static_cast<long>(sent.size()));
  const auto again = net::parse_request_head(sent);
  require(again.has_value());
  require(again->method == head->method && again->target == target->origin_form);
  std::string_view named;
  require(net::count_fields(again->fields, "host", &named) == 1);
  const auto authority = net::parse_authority(named);
  require(authority && *policy::canonical_host(authority->host) == *host);
  require(authority->port.value_or(80) == request->port);
  const auto framing = net::request_framing(*again);
  require(framing && framing->kind == request->framing.kind && framing->length == request->framing.length);
  return 0;
}
