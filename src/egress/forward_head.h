// Message heads written anew on their way through the proxy: the receiver gets what was understood, not what was sent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_head.h"

namespace belljar::egress {

struct ForwardRequest {
  std::string method;
  std::string origin_form;  // path and query
  std::string host;         // canonical
  uint16_t port = 80;
  net::Framing framing;
  bool http10 = false;      // the client speaks HTTP/1.0
  bool keep_alive = false;  // the client would go on with this connection
  bool websocket = false;   // it asks for that upgrade; no other is passed on
  bool absolute = false;    // an upstream proxy is asked, which is told the host in the target
  // Of a callback: the answer has at most so many bytes, is no redirect, and brings Content-Type and nothing else.
  std::optional<uint64_t> max_answer{};
};

// What the request says about framing and connection. `method`, `framing`, `http10`, `keep_alive`, `websocket`.
[[nodiscard]] net::HttpResult<ForwardRequest> read_request(const net::RequestHead& head);

// One field of a head, with its line end.
void append_field(std::string& out, std::string_view name, std::string_view value);

// The head for the upstream: HTTP/1.1, one Host, hop-by-hop fields gone, `Connection: close`. `authorization` is for an
// upstream proxy, or empty.
[[nodiscard]] std::string upstream_head(const ForwardRequest& request, const net::RequestHead& head,
                                        std::string_view authorization = {});

// The head for the client. `keep_alive` is what the proxy will do.
[[nodiscard]] std::string client_head(const ForwardRequest& request, const net::ResponseHead& head,
                                      net::Framing framing, bool keep_alive);

// 1xx, 101 included: no body and no framing fields.
[[nodiscard]] std::string interim_head(const net::ResponseHead& head);

}  // namespace belljar::egress
