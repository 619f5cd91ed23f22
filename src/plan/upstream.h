// By which HTTP proxy the launcher itself reaches the net.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "plan/plan.h"

namespace belljar::plan {

// What `setting` (policy::Isolation::upstream_proxy) means in `environment`; nothing when no proxy is meant. From the
// environment the first of https_proxy, HTTPS_PROXY, all_proxy and ALL_PROXY counts, as curl(1) reads them, and
// no_proxy or NO_PROXY beside it. A refusal for a proxy that is spoken to in another way than plain HTTP; it never
// quotes credentials.
[[nodiscard]] base::Result<std::optional<Upstream>> make_upstream(
    const std::string& setting, const std::map<std::string, std::string, std::less<>>& environment);

// `10.0.0.1:3128`, without credentials.
[[nodiscard]] std::string to_text(const Upstream& upstream);

}  // namespace belljar::plan
