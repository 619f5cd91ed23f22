// What a launch in a container needs to know of the engine.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "plan/facts.h"
#include "tiers/docker/engine.h"

namespace belljar::session {

// What an engine has been asked for a launch, once: plan and launch rest on the same answers.
struct EngineLook {
  std::string socket{};
  std::optional<tiers::docker::Engine> engine{};
  std::optional<tiers::docker::Image> image{};
  std::optional<base::Error> fault{};  // why one of them is missing
};

// Asks the engine that `docker_host` (the value of DOCKER_HOST, may be empty) names for its abilities, and what
// `image` (empty: the default) is now.
[[nodiscard]] EngineLook look_at_engine(const std::string& docker_host, const std::string& image,
                                        const base::Deadline& deadline);

// What the engine can limit takes the place of what this host's cgroups can. What went wrong is the fact's fault.
void add_engine(const EngineLook& look, plan::Facts& facts);

}  // namespace belljar::session
