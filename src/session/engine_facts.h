// What a launch in a container needs to know of the engine.
#pragma once

#include <string>

#include "plan/facts.h"

namespace belljar::session {

// Asks the engine that `docker_host` (the value of DOCKER_HOST, may be empty) names for its abilities, and what
// `image` (empty: the default) is now. What the engine can limit takes the place of what this host's cgroups can. What
// goes wrong is the fact's fault.
void gather_engine(const std::string& docker_host, const std::string& image, plan::Facts& facts);

}  // namespace belljar::session
