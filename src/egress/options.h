// What a proxy is made with.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "egress/dialer.h"
#include "net/event_loop.h"
#include "net/http_head.h"
#include "net/resolver.h"
#include "policy/policy.h"

namespace belljar::egress {

// The defaults are those of production; only tests set more than `rules` and `max_connections`.
struct Options {
  std::vector<policy::HostRule> rules;

  // Clients and tunnels together. A tunnel holds two descriptors, a pipe in use two more. Where the process may open
  // fewer (RLIMIT_NOFILE), clients wait or get a 503; nothing breaks.
  size_t max_connections = 1024;
  size_t max_pipes = 128;

  // Absolute: a client that sends a byte a second is closed all the same.
  std::chrono::milliseconds head_deadline{30'000};
  std::chrono::milliseconds hello_deadline{30'000};
  // For a kept-alive connection between two requests.
  std::chrono::milliseconds idle_deadline{120'000};
  // For the client to take a refusal and close.
  std::chrono::milliseconds linger_deadline{2'000};

  DialTimes dial;
  net::HeadLimits head_limits;
  AddressPolicy addresses;
  // Empty means c-ares with the host's resolv.conf and hosts file.
  std::function<std::unique_ptr<net::Resolver>(net::EventLoop&)> make_resolver;
};

}  // namespace belljar::egress
