#include "tiers/docker/reach.h"

#include <poll.h>

#include <optional>
#include <variant>

#include "tiers/docker/channel.h"
#include "tiers/docker/engine.h"

namespace belljar::tiers::docker {

base::Status Reach::answers(const std::string& socket) {
  const auto known = known_.find(socket);
  if (known != known_.end()) return known->second;
  std::optional<Engine> engine;
  auto answered = ask_until_answered(engine, socket, base::Deadline::after(patience_),
                                     [](const Engine&) { return base::Status(); });
  return known_.emplace(socket, std::move(answered)).first->second;
}

bool is_silent(const std::string& socket, const base::Deadline& deadline) {
  constexpr int kPauseMilliseconds = 100;
  for (;;) {
    const Outcome outcome = carry_out(socket, {.method = "GET", .target = "/_ping", .deadline = deadline});
    const auto* refused = std::get_if<Refused>(&outcome);
    if (std::holds_alternative<Answered>(outcome) || (refused != nullptr && refused->status != 0)) return false;
    if (deadline.passed()) return true;
    (void)::poll(nullptr, 0, kPauseMilliseconds);
  }
}

}  // namespace belljar::tiers::docker
