#include "egress/hook.h"

namespace belljar::egress {
namespace {

bool is_somebodys(const net::IpAddress& address) {
  using enum net::AddressClass;
  switch (net::classify(address)) {
    case kUnspecified:
    case kMapped:
    case kMulticast:
    case kBroadcast:
    case kReserved:
    case kDiscard:
      return false;
    default:
      return true;
  }
}

}  // namespace

net::HttpResult<std::string> hook_head(const Hook& hook, ForwardRequest& request, const net::RequestHead& head) {
  if (request.framing.kind == net::Framing::Kind::kChunked) {
    return std::unexpected(net::HttpProblem{411, "a callback says its length beforehand"});
  }
  if (request.framing.length > kMaxHookBody) {
    return std::unexpected(net::HttpProblem{413, "a callback has at most 1 MiB"});
  }
  std::string_view type;
  if (net::count_fields(head.fields, "content-type", &type) > 1) {
    return std::unexpected(net::HttpProblem{400, "two Content-Type fields"});
  }
  request.websocket = false;
  request.max_answer = kMaxHookAnswer;
  request.host = hook.host;
  request.port = hook.port;
  request.origin_form = hook.target;
  const bool v6 = hook.host.find(':') != std::string::npos;
  std::string host = (v6 ? "[" : "") + hook.host + (v6 ? "]" : "");
  if (hook.port != (hook.secure ? 443 : 80)) host.append(":").append(std::to_string(hook.port));
  std::string out = "POST " + hook.target + " HTTP/1.1\r\n";
  append_field(out, "Host", host);
  if (!type.empty()) append_field(out, "Content-Type", type);
  append_field(out, "Content-Length", std::to_string(request.framing.length));
  if (!hook.token.empty()) append_field(out, "Authorization", "Bearer " + hook.token);
  append_field(out, "Belljar-Session", hook.session);
  append_field(out, "Connection", "close");
  return out += "\r\n";
}

const AddressPolicy& hook_addresses() {
  static constexpr AddressPolicy kPolicy{&is_somebodys, true};
  return kPolicy;
}

}  // namespace belljar::egress
