// A guest's listener, kept by the process that supervises the guest while the proxies that serve it come and go.
#pragma once

#include <utility>

#include "base/error.h"
#include "base/fd.h"
#include "net/address.h"

namespace belljar::egress {

// Between one proxy and the next the guest is refused at once, not left to wait in a queue that nobody empties, and
// nobody takes the address. There is no other way out meanwhile: what is kept is only this socket.
class KeptListener {
 public:
  // A TCP socket that listens on a port that its maker named and that nobody has connected to yet.
  static base::Result<KeptListener> keep(base::Fd listener);

  // The same socket once more, for a proxy. While it is shut, Proxy::create() refuses it.
  [[nodiscard]] base::Result<base::Fd> share() const;

  // The proxy is gone, or is to go: new connections are refused, those in the queue are reset. Those that a proxy has
  // accepted are its own; one that still accepts ends with an error.
  [[nodiscard]] base::Status shut() const;
  // There is a proxy again, or will be in a moment.
  [[nodiscard]] base::Status open() const;

 private:
  KeptListener(base::Fd listener, net::Endpoint at) : listener_(std::move(listener)), at_(at) {}

  base::Fd listener_;
  net::Endpoint at_;
};

}  // namespace belljar::egress
