#include "net/http_target.h"

#include <algorithm>

#include "base/text.h"

namespace belljar::net {
namespace {}  // namespace

HttpResult<Authority> parse_authority(std::string_view text) {
  Authority out;
  if (text.find('@') != std::string_view::npos) return bad("a user name in the authority");
  size_t host_end = 0;
  if (text.starts_with('[')) {
    host_end = text.find(']');
    if (host_end == std::string_view::npos) return bad("an IPv6 literal without its closing bracket");
    ++host_end;
  } else {
    host_end = std::min(text.find(':'), text.size());
  }
  out.host = text.substr(0, host_end);
  if (out.host.empty()) return bad("the authority names no host");
  const std::string_view rest = text.substr(host_end);
  if (rest.empty()) return out;
  const std::string_view digits = rest.substr(1);
  uint64_t port = 0;
  if (rest.front() != ':' || digits.starts_with('0') || digits.size() > 5 || !base::parse_uint(digits, port) ||
      port > 65535) {
    return bad("the port is not a number from 1 to 65535");
  }
  out.port = static_cast<uint16_t>(port);
  return out;
}

HttpResult<std::string> parse_origin_target(std::string_view target, std::string_view method) {
  if (target == "*" && method == "OPTIONS") return std::string(target);
  if (!target.starts_with('/')) return bad("the request target is no path");
  if (target.find('#') != std::string_view::npos) return bad("a fragment in the request target");
  if (target.find('\\') != std::string_view::npos) return bad("a backslash in the request target");
  return std::string(target);
}

HttpResult<AbsoluteTarget> parse_absolute_target(std::string_view target, std::string_view method) {
  constexpr std::string_view kScheme = "http://";
  if (target.starts_with('/') || target == "*") {
    return bad("this is a proxy: it wants a whole URI or CONNECT, not a path");
  }
  if (target.size() > 8 && same_name(target.substr(0, 8), "https://")) {
    return bad("a https URI is reached by CONNECT, so that the proxy need not see inside");
  }
  if (target.size() < kScheme.size() || !same_name(target.substr(0, kScheme.size()), kScheme)) {
    return bad("the request target is no http URI");
  }
  if (target.find('#') != std::string_view::npos) return bad("a fragment in the request target");
  if (target.find('\\') != std::string_view::npos) return bad("a backslash in the request target");
  const std::string_view rest = target.substr(kScheme.size());
  const size_t end = std::min(rest.find_first_of("/?"), rest.size());
  auto authority = parse_authority(rest.substr(0, end));
  if (!authority) return std::unexpected(authority.error());
  AbsoluteTarget out{*authority, {}};
  const std::string_view path = rest.substr(end);
  if (path.empty() && method == "OPTIONS") {
    out.origin_form = "*";  // RFC 9112, section 3.2.4
  } else {
    if (!path.starts_with('/')) out.origin_form = "/";
    out.origin_form += path;
  }
  return out;
}

}  // namespace belljar::net
