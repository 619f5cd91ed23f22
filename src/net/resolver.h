// Names to addresses, without blocking the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/address.h"

namespace belljar::net {

enum class ResolveStatus : uint8_t {
  kOk,        // at least one address
  kNotFound,  // the name does not exist, or has neither A nor AAAA
  kTimeout,   // no server answered in time
  kFailed,    // the servers refused, failed or answered nonsense
};

struct Resolution {
  ResolveStatus status = ResolveStatus::kFailed;
  std::string detail;                // for messages: "server failure"
  std::vector<IpAddress> addresses;  // every A and AAAA of the answer, unchecked, no duplicates
};

class Resolver {
 public:
  using Callback = std::function<void(const Resolution&)>;
  using Id = uint64_t;

  virtual ~Resolver() = default;

  // Looks up A and AAAA of `host`, a canonical name, never with a search domain. `done` is called once on the loop's
  // thread, never before this returns, and not at all after cancel() or when the resolver is destroyed.
  virtual Id resolve(const std::string& host, Callback done) = 0;
  virtual void cancel(Id id) = 0;
};

}  // namespace belljar::net
