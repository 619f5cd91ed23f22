// A resolver that remembers what another one learnt, for as long as the answer says.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/resolver.h"

namespace belljar::net {

// Keeps good answers only, each until its TTL or kLongest is over on the boot clock, at most kMost of them. One lookup
// serves all who wait for the same name. What it gives is as unchecked as what it was given: an address is checked
// each time it is to be dialled.
class CachingResolver final : public Resolver {
 public:
  static constexpr std::chrono::seconds kLongest{60};
  static constexpr size_t kMost = 1024;

  explicit CachingResolver(std::unique_ptr<Resolver> inner) : inner_(std::move(inner)) {}
  ~CachingResolver() override;

  void prepare() override { inner_->prepare(); }
  void change_servers(const std::string& servers) override { inner_->change_servers(servers); }
  [[nodiscard]] const Resolution* at_hand(const std::string& host) override;
  Id resolve(const std::string& host, Callback done) override;
  void cancel(Id id) override;

 private:
  struct Entry {
    Resolution resolution;
    std::chrono::nanoseconds until{};
  };
  struct Waiter {
    Id id = 0;
    Callback done;
  };
  struct Lookup {
    Id inner = 0;
    std::vector<Waiter> waiters;
  };

  void answered(const std::string& host, const Resolution& resolution);
  void keep(const std::string& host, const Resolution& resolution);

  std::unique_ptr<Resolver> inner_;
  Id last_ = 0;
  std::unordered_map<std::string, Entry> known_;
  std::unordered_map<std::string, Lookup> lookups_;
  std::unordered_map<Id, std::string> asked_;  // which lookup an id waits for
};

}  // namespace belljar::net
