// Request targets (RFC 9112, section 3.2) and the Host field, taken apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_head.h"

namespace belljar::net {

struct Authority {
  std::string_view host;  // as sent; brackets of an IPv6 literal included; not yet canonical
  std::optional<uint16_t> port;
};

// `host`, `host:port`, `[v6]`, `[v6]:port`. No user name, no empty host, no empty port, no port 0, no leading zeros.
[[nodiscard]] HttpResult<Authority> parse_authority(std::string_view text);

struct AbsoluteTarget {
  Authority authority;
  std::string origin_form;  // path and query, what the origin server is asked for
};

// `http://authority/path?query`. Other schemes, a fragment and a backslash are refused.
[[nodiscard]] HttpResult<AbsoluteTarget> parse_absolute_target(std::string_view target, std::string_view method);

// A path with its query, or `*` with OPTIONS: what a client sends that takes us for the server itself.
[[nodiscard]] HttpResult<std::string> parse_origin_target(std::string_view target, std::string_view method);

}  // namespace belljar::net
