// The lists of hosts and ports in a policy file; shared by the parser's units only.
#pragma once

#include <vector>

#include "base/error.h"
#include "policy/policy.h"
#include "policy/walker.h"

namespace belljar::policy {

// `allow_hosts` of a section: texts, or tables with options. No rule twice.
[[nodiscard]] base::Result<std::vector<HostRule>> parse_allow_hosts(const Section& section);
// `deny_hosts`: texts.
[[nodiscard]] base::Result<std::vector<HostRule>> parse_deny_hosts(const Section& section);
// `host_ports`: numbers.
[[nodiscard]] base::Result<std::vector<HostRule>> parse_host_ports(const Section& section);

}  // namespace belljar::policy
