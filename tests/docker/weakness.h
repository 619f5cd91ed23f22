// Containers that lack one protection, and the check of the first process's probe that is for it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "guest/probe.h"
#include "tiers/docker/launch.h"

namespace belljar::testing {

// Changes what is asked of the engine, or of the guest.
using Weaken = std::function<void(tiers::docker::Prepared&, nlohmann::json&)>;

struct Weakness {
  guest::Check check;
  const char* what;  // of the refusal
  Weaken weaken;
};

// A merge patch (RFC 7396) of the request.
[[nodiscard]] Weaken patch(const char* text);
// As above, and the guest leaves out a step of its own that would make up for it.
[[nodiscard]] Weaken without_step(uint32_t step, const char* text = "{}");

// Those of the boundary, the same for every container without a network.
[[nodiscard]] std::vector<Weakness> weaknesses_of_the_boundary();

}  // namespace belljar::testing
