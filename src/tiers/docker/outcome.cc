#include "tiers/docker/outcome.h"

#include <utility>

namespace belljar::tiers::docker {

base::Result<Answered> require(Outcome outcome, std::string_view operation, std::string_view subject) {
  if (auto* answered = std::get_if<Answered>(&outcome)) return std::move(*answered);
  base::Error error;
  error.operation = operation;
  error.subject = subject;
  if (const auto* refused = std::get_if<Refused>(&outcome)) {
    if (refused->status == 0) {
      error.reason = "the container engine was not reached: " + refused->reason + ", refusing";
      error.hint = "start the engine, or name its socket by DOCKER_HOST=unix:///path";
    } else {
      error.reason = "the container engine refused: " + refused->reason;
    }
  } else if (const auto* unknown = std::get_if<Unknown>(&outcome)) {
    error.code = unknown->code;
    error.reason = "the container engine did not say whether it was done: " + unknown->reason;
    error.hint = "what it may have left is removed by its label: see 'belljar recover'";
  }
  return std::unexpected(std::move(error));
}

}  // namespace belljar::tiers::docker
