// Rules that come while the proxy runs, through a file of Belljar's own that no guest can write.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "net/event_loop.h"
#include "policy/policy.h"

namespace belljar::egress {

// All that holds from now on.
struct RuleUpdate {
  std::vector<policy::HostRule> rules;  // from policy::session_rules()
  std::string name_servers;             // as net::AresOptions::servers; empty: as before
};

inline constexpr size_t kMostUpdate = size_t{4} << 20U;

// For a file between two processes of one build.
[[nodiscard]] std::string encode(const RuleUpdate& update);
// An error when the bytes are not whole, or those of another version.
[[nodiscard]] base::Result<RuleUpdate> decode_rules(std::string_view bytes);

// What has become of an update, for the person who sent it.
struct UpdateOutcome {
  size_t cut = 0;  // connections that were no longer allowed
};

// Whoever rings after writing an update into the file has it taken, and finds the answer in its place: a line that
// starts with `taken` or `refused`. Both descriptors were made by a launcher that can open nothing any more.
class RuleFeed final : private net::Watcher {
 public:
  using Take = std::function<base::Result<UpdateOutcome>(const RuleUpdate&)>;

  // `file` is open for reading and writing; `bell` is non-blocking, and readable once somebody has rung.
  RuleFeed(net::EventLoop& loop, base::Fd file, base::Fd bell, Take take)
      : loop_(loop), file_(std::move(file)), bell_(std::move(bell)), take_(std::move(take)) {}
  ~RuleFeed() override { loop_.forget(bell_.get(), *this); }
  [[nodiscard]] base::Status watch() { return loop_.watch(bell_.get(), EPOLLIN, *this); }

 private:
  void on_events(uint32_t events) override;
  void answer(const std::string& line) const;

  net::EventLoop& loop_;
  base::Fd file_;
  base::Fd bell_;
  Take take_;
};

}  // namespace belljar::egress
