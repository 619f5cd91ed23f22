// What an engine says when it refuses.
#pragma once

#include <string>
#include <string_view>

namespace belljar::tiers::docker {

// The `message` of an engine's error body (Engine API, ErrorResponse), cut at 1 kB; else the status.
[[nodiscard]] std::string refusal_of(std::string_view body, int status);

}  // namespace belljar::tiers::docker
