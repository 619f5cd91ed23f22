// The environment that makes ordinary programs use the way out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace belljar::policy {

// Name and value of every variable a guest needs so that its programs reach the proxy on its own 127.0.0.1:`port`.
// Pure; the order is stable and no name occurs twice. Servers of the guest itself stay direct (NO_PROXY).
// The list says nothing about programs that read no such variable (ssh, psql): those need a way out by SOCKS or by
// redirection.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> proxy_environment(uint16_t port);

}  // namespace belljar::policy
