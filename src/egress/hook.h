// The relay to the control host: one request, written anew, to one URL, and nothing else of that host.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "egress/dialer.h"
#include "egress/forward_head.h"
#include "net/http_head.h"

namespace belljar::egress {

struct Hook {
  std::string host;  // canonical
  uint16_t port = 80;
  std::string target;   // path and query
  std::string token;    // goes along as a bearer token (RFC 6750, section 2.1); empty: none
  std::string session;  // goes along as Belljar-Session
  // For https: gives a connected socket to who speaks TLS on it, and returns the one that the clear text goes through.
  // Empty: http.
  std::function<base::Result<base::Fd>(int connected)> secure{};
};

// A callback is short; so is what it is answered.
inline constexpr uint64_t kMaxHookBody = uint64_t{1} << 20U;
inline constexpr uint64_t kMaxHookAnswer = uint64_t{1} << 20U;

// The head for the control host. Of the client's own it takes Content-Type and the length, which must be known (411)
// and at most kMaxHookBody (413); every other field stays behind. `request` becomes that of the relayed one: no
// upgrade.
[[nodiscard]] net::HttpResult<std::string> hook_head(const Hook& hook, ForwardRequest& request,
                                                     const net::RequestHead& head);

// A person has named the very host, so it may be loopback, this host or a neighbour. Only nobody's addresses are none.
[[nodiscard]] const AddressPolicy& hook_addresses();

}  // namespace belljar::egress
