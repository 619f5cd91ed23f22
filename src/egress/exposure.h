// The one way in: ports of this host's loopback that lead to servers in a guest.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "policy/policy.h"

namespace belljar::egress {

// Listens on 127.0.0.1 and ::1 of the namespace it is made in. What connects there is joined with 127.0.0.1 (or, where
// nobody listens, ::1) of the guest, over a socket that was made in the guest's network namespace and that this end
// connects: a socket keeps the namespace it was made in, and the address is never the guest's to choose. Nothing of the
// guest's can open a connection this way.
class Exposure {
 public:
  // Asks the guest's init for one TCP socket, not connected, of AF_INET or AF_INET6; give() brings the answers, in the
  // order of the questions. False: it cannot be asked any more. Called on the thread of run().
  using Ask = std::function<bool(int family)>;

  // Takes the ports, and accepts nothing yet. A port that is taken, or that the caller may not have, is named.
  static base::Result<std::unique_ptr<Exposure>> create(const std::vector<policy::ExposedPort>& ports);
  ~Exposure();
  Exposure(const Exposure&) = delete;
  Exposure& operator=(const Exposure&) = delete;

  // Serves until stop(), on the calling thread; then all connections are closed. Once.
  base::Status run(Ask ask);

  // Thread-safe. An invalid `socket` says that there is none; one that is not what was asked for is closed.
  void give(base::Fd socket);
  // Thread-safe; may come before, during or after run().
  void stop();

  // Connections at a time; more are reset at once.
  static constexpr size_t kMost = 256;

 private:
  class Impl;
  explicit Exposure(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace belljar::egress
