// The making of an image from a container (Engine API, ImageCommit).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tiers/docker/engine.h"

namespace belljar::tiers::docker::image {

// The configuration of the image. What is not in it is the container's.
[[nodiscard]] std::string commit_request(const std::vector<std::string>& env, const Labels& labels);
// Of the answer; some engines answer with the id alone, without "sha256:".
[[nodiscard]] std::optional<std::string> committed_id(std::string_view body);

}  // namespace belljar::tiers::docker::image
