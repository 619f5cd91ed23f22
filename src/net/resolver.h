// Names to addresses, without blocking the loop.
#pragma once

#include <chrono>
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
  std::chrono::seconds ttl{0};       // the shortest of the answer's records; 0 when it must not be kept
  // The names that the host was an alias of on the way to them, lower case, without trailing dot.
  std::vector<std::string> aliases{};
};

class Resolver {
 public:
  using Callback = std::function<void(const Resolution&)>;
  using Id = uint64_t;

  virtual ~Resolver() = default;

  // Does now what would be done at the first lookup, and reads the files of the host for good: for a caller that cannot
  // open any later.
  virtual void prepare() {}

  // Other name servers from now on, as net::AresOptions::servers.
  virtual void change_servers(const std::string& /*servers*/) {}

  // What is known about `host` without a lookup, or nothing. Valid until the next call of any member.
  [[nodiscard]] virtual const Resolution* at_hand(const std::string& /*host*/) { return nullptr; }

  // Looks up A and AAAA of `host`, a canonical name, never with a search domain. `done` is called once on the loop's
  // thread, never before this returns, and not at all after cancel() or when the resolver is destroyed.
  virtual Id resolve(const std::string& host, Callback done) = 0;
  virtual void cancel(Id id) = 0;
};

}  // namespace belljar::net
