// The way out for programs that know no proxy: a resolver that gives synthetic addresses, and the connections to them.
#pragma once

#include <memory>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::egress {

struct Context;

// Sockets made in the guest's network namespace, non-blocking: a listener that connections to synthetic addresses
// (linux/local_route.h, linux/tcp_redirect.h) are led to, and a bound UDP socket and a listener for DNS.
struct TransparentSockets {
  base::Fd redirected;
  base::Fd datagrams;
  base::Fd streams;
  bool v6 = false;  // synthetic addresses of IPv6 too
  [[nodiscard]] bool there() const { return redirected.valid() && datagrams.valid() && streams.valid(); }
};

class TransparentWay {
 public:
  // `context` must outlive it.
  TransparentWay(Context& context, TransparentSockets sockets);
  ~TransparentWay();
  TransparentWay(const TransparentWay&) = delete;
  TransparentWay& operator=(const TransparentWay&) = delete;

  [[nodiscard]] base::Status watch();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace belljar::egress
