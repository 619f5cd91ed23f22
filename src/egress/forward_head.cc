#include "egress/forward_head.h"

namespace belljar::egress {
namespace {

void append_end_to_end(std::string& out, const std::vector<net::Field>& fields, std::string_view without) {
  for (const net::Field& field : fields) {
    if (net::is_hop_by_hop(fields, field.name) || net::same_name(field.name, without)) continue;
    append_field(out, field.name, field.value);
  }
}

void append_framing(std::string& out, net::Framing framing) {
  if (framing.kind == net::Framing::Kind::kChunked) append_field(out, "Transfer-Encoding", "chunked");
  if (framing.kind == net::Framing::Kind::kLength) append_field(out, "Content-Length", std::to_string(framing.length));
}

void append_status_line(std::string& out, const net::ResponseHead& head) {
  out.append("HTTP/1.1 ").append(std::to_string(head.status)).append(" ").append(head.reason).append("\r\n");
}

}  // namespace

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

net::HttpResult<ForwardRequest> read_request(const net::RequestHead& head) {
  ForwardRequest out;
  out.method = head.method;
  out.http10 = head.minor == 0;
  const auto framing = net::request_framing(head);
  if (!framing) return std::unexpected(framing.error());
  out.framing = *framing;
  if (const auto fine = net::check_connection_options(head.fields); !fine) return std::unexpected(fine.error());
  // Proxy-Connection is no standard field, but curl and others still send it to proxies, with this meaning.
  const bool close = net::lists_token(head.fields, "connection", "close") ||
                     net::lists_token(head.fields, "proxy-connection", "close");
  out.keep_alive = !out.http10 && !close;
  std::string_view upgrade;
  out.websocket = !out.http10 && net::lists_token(head.fields, "connection", "upgrade") &&
                  net::count_fields(head.fields, "upgrade", &upgrade) == 1 && net::same_name(upgrade, "websocket");
  return out;
}

std::string upstream_head(const ForwardRequest& request, const net::RequestHead& head, std::string_view authorization) {
  const bool v6 = request.host.find(':') != std::string::npos;
  std::string host = v6 ? "[" : "";
  host.append(request.host).append(v6 ? "]" : "");
  if (request.port != 80) host.append(":").append(std::to_string(request.port));
  std::string out = request.method + " ";
  if (request.absolute) out.append("http://").append(host);
  // RFC 9112, section 3.2.4: `OPTIONS *` is asked of a proxy without a path.
  if (!(request.absolute && request.origin_form == "*")) out.append(request.origin_form);
  out.append(" HTTP/1.1\r\n");
  append_field(out, "Host", host);
  append_end_to_end(out, head.fields, "host");
  if (!authorization.empty()) append_field(out, "Proxy-Authorization", authorization);
  append_framing(out, request.framing);
  if (request.websocket) {
    append_field(out, "Connection", "Upgrade");
    append_field(out, "Upgrade", "websocket");
  } else {
    append_field(out, "Connection", "close");
  }
  return out += "\r\n";
}

std::string client_head(const ForwardRequest& request, const net::ResponseHead& head, net::Framing framing,
                        bool keep_alive) {
  std::string out;
  append_status_line(out, head);
  std::string_view type;
  if (!request.max_answer) {
    append_end_to_end(out, head.fields, {});
  } else if (net::count_fields(head.fields, "content-type", &type) == 1) {
    append_field(out, "Content-Type", type);
  }
  std::string_view length;
  if (framing.kind == net::Framing::Kind::kNone && head.status != 204 &&
      net::count_fields(head.fields, "content-length", &length) == 1) {
    append_field(out, "Content-Length", length);  // to HEAD, or with 304: what GET would get
  } else if (!(request.http10 && framing.kind == net::Framing::Kind::kChunked)) {
    append_framing(out, framing);
  }
  if (!keep_alive) append_field(out, "Connection", "close");
  return out += "\r\n";
}

std::string interim_head(const net::ResponseHead& head) {
  std::string out;
  append_status_line(out, head);
  append_end_to_end(out, head.fields, {});
  if (head.status == 101) {
    append_field(out, "Connection", "Upgrade");
    append_field(out, "Upgrade", "websocket");
  }
  return out += "\r\n";
}

}  // namespace belljar::egress
