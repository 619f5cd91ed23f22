// What a proxy is made with.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "egress/audit.h"
#include "egress/dialer.h"
#include "egress/hook.h"
#include "egress/upstream_tunnel.h"
#include "net/event_loop.h"
#include "net/http_head.h"
#include "net/resolver.h"
#include "policy/policy.h"

namespace belljar::egress {

// Where a connection was on its way to when the kernel redirected it to the listener.
struct Destination {
  std::string host;  // canonical (policy::canonical_host): a name, or an address that no name is known for
  uint16_t port = 0;
};

// The defaults are those of production; only tests set more than `rules` and `max_connections`.
struct Options {
  std::vector<policy::HostRule> rules;
  Audit* audit = nullptr;  // outlives the proxy
  // What the rules with `hook` lead to; without it they lead nowhere.
  std::optional<Hook> hook;

  // Clients and tunnels together. A tunnel holds two descriptors, a pipe in use two more. Where the process may open
  // fewer (RLIMIT_NOFILE), clients wait or get a 503; nothing breaks.
  size_t max_connections = 1024;
  size_t max_pipes = 128;
  // Bytes that heads, hellos and bodies of plain HTTP may take in buffers of all connections together. Tunnels have
  // none.
  size_t max_buffered = size_t{32} << 20U;

  // Absolute: a client that sends a byte a second is closed all the same.
  std::chrono::milliseconds head_deadline{30'000};
  std::chrono::milliseconds hello_deadline{30'000};
  // For a kept-alive connection between two requests.
  std::chrono::milliseconds idle_deadline{120'000};
  // For the client to take a refusal and close.
  std::chrono::milliseconds linger_deadline{2'000};

  // By which proxy hosts are reached.
  std::optional<UpstreamProxy> upstream;
  // Asks a person about what no rule decides (egress/question.h); invalid: nobody is asked. Shared so that options are
  // a value: the proxy takes it.
  std::shared_ptr<base::Fd> questions;
  // See RuleFeed; both or neither.
  std::shared_ptr<base::Fd> rule_file;
  std::shared_ptr<base::Fd> rule_notices;
  // From which other name servers come, one list a message (egress/name_server_feed.h); invalid: none do.
  std::shared_ptr<base::Fd> name_servers;
  // False for ports that new rules may not bring, since this process could not connect to them. Empty: all may.
  std::function<bool(const policy::HostRule& rule)> may_bring;

  DialTimes dial;
  net::HeadLimits head_limits;
  AddressPolicy addresses;
  // Asked for each accepted socket, with its descriptor. One with a destination is not spoken to as a proxy: the host
  // and port are judged like those of CONNECT, then TLS must name the host, HTTP/1 name it in each Host field, and
  // anything else needs a rule for any protocol. Empty means that nothing is redirected.
  std::function<std::optional<Destination>(int socket)> destination_of;
  // Empty means c-ares with the host's resolv.conf and hosts file.
  std::function<std::unique_ptr<net::Resolver>(net::EventLoop&)> make_resolver;
};

}  // namespace belljar::egress
