// Where a redirected connection was on its way to.
#pragma once

#include <optional>

#include "net/address.h"

namespace belljar::net {

// SO_ORIGINAL_DST of an accepted socket that netfilter may have redirected; of a dual-stack socket either kind. For a
// connection that was not redirected it is where the client connected, when the kernel tracks it at all. No value when
// it does not.
[[nodiscard]] std::optional<Endpoint> original_destination(int socket);

}  // namespace belljar::net
