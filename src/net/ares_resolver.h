// The resolver of production: c-ares on the event loop.
#pragma once

#include <memory>
#include <string>

#include "net/event_loop.h"
#include "net/resolver.h"

namespace belljar::net {

struct AresOptions {
  std::string servers;          // "127.0.0.1:5353,[::1]:53"; empty means those of /etc/resolv.conf
  bool hosts_file = true;       // ask /etc/hosts first
  int first_timeout_ms = 2000;  // doubled with every round
  int tries = 3;                // rounds over the servers
};

// Reads /etc/resolv.conf at prepare() or at the first lookup only, so that a session that asks nothing pays nothing.
// Must not outlive `loop`.
[[nodiscard]] std::unique_ptr<Resolver> make_ares_resolver(EventLoop& loop, AresOptions options = {});

}  // namespace belljar::net
