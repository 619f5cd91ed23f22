// The way out: an allowlist proxy for one guest.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "egress/denial.h"
#include "egress/journal.h"
#include "egress/options.h"
#include "egress/transparent_way.h"

namespace belljar::egress {

// Accepts on a listener made inside the guest's network namespace (a socket keeps the namespace it was made in) and
// dials from the namespace of the thread that calls run(). When the guest dies the listener falls silent without an
// error, so only stop() ends run().
class Proxy {
 public:
  // `listener` is a listening TCP socket; it is made non-blocking. With `transparent` programs that know no proxy are
  // served as well. Starts no thread, reads no file, resolves nothing.
  static base::Result<std::unique_ptr<Proxy>> create(base::Fd listener, Options options,
                                                     TransparentSockets transparent = {});
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Reads the host's files that resolving needs, when there is a rule that could lead to a lookup: for a caller that
  // cannot open any later. Before run(), on any thread.
  void prepare();

  // Serves until stop(), on the calling thread; then all connections are closed. Once per proxy. An error means that
  // the kernel refused the proxy's own means (epoll, accept), never something a client did.
  base::Status run();

  // Thread-safe; may come before, during or after run().
  void stop();

  // After run() has returned.
  [[nodiscard]] std::vector<Denial> denials() const;
  // What was allowed, and how often more than Journal::kUses different ones. After run() has returned.
  [[nodiscard]] std::vector<Use> uses() const;
  [[nodiscard]] uint64_t unlisted_uses() const;
  // Refusals beyond DenialLog::kLimit different ones. After run() has returned.
  [[nodiscard]] uint64_t unlisted_denials() const;

 private:
  class Impl;
  explicit Proxy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace belljar::egress
