#include "net/caching_resolver.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace belljar::net {

CachingResolver::~CachingResolver() {
  lookups_.clear();
}

const Resolution* CachingResolver::at_hand(const std::string& host) {
  const auto found = known_.find(host);
  if (found == known_.end()) return nullptr;
  if (found->second.until > base::boot_now()) return &found->second.resolution;
  known_.erase(found);
  return nullptr;
}

Resolver::Id CachingResolver::resolve(const std::string& host, Callback done) {
  const Id id = ++last_;
  asked_.emplace(id, host);
  const auto [found, first] = lookups_.try_emplace(host);
  found->second.waiters.push_back({id, std::move(done)});
  if (first) {
    const Id inner = inner_->resolve(host, [this, host](const Resolution& resolution) { answered(host, resolution); });
    lookups_.at(host).inner = inner;
  }
  return id;
}

void CachingResolver::cancel(Id id) {
  const auto asked = asked_.find(id);
  if (asked == asked_.end()) return;
  const auto lookup = lookups_.find(asked->second);
  asked_.erase(asked);
  if (lookup == lookups_.end()) return;
  std::erase_if(lookup->second.waiters, [&](const Waiter& waiter) { return waiter.id == id; });
  if (!lookup->second.waiters.empty()) return;
  inner_->cancel(lookup->second.inner);
  lookups_.erase(lookup);
}

void CachingResolver::answered(const std::string& host, const Resolution& resolution) {
  const auto found = lookups_.find(host);
  if (found == lookups_.end()) return;
  keep(host, resolution);
  std::vector<Waiter> waiters = std::move(found->second.waiters);
  lookups_.erase(found);
  for (Waiter& waiter : waiters) {
    // A callback may cancel one of the others.
    if (asked_.erase(waiter.id) != 0) waiter.done(resolution);
  }
}

void CachingResolver::keep(const std::string& host, const Resolution& resolution) {
  if (resolution.status != ResolveStatus::kOk || resolution.ttl <= std::chrono::seconds(0)) return;
  const auto now = base::boot_now();
  if (known_.size() >= kMost) {
    std::erase_if(known_, [&](const auto& entry) { return entry.second.until <= now; });
    if (known_.size() >= kMost) known_.erase(known_.begin());
  }
  known_[host] = {resolution, now + std::min(resolution.ttl, kLongest)};
}

}  // namespace belljar::net
