// The create request as a JSON value, for those that hold parts of it against what the engine says.
#pragma once

#include <nlohmann/json.hpp>

#include "tiers/docker/profile.h"

namespace belljar::tiers::docker {

[[nodiscard]] nlohmann::json create_json(const Profile& profile);
// "none", "bridge"
[[nodiscard]] const char* network_name(ContainerNetwork network);

// What the engine's list of resolved mounts has to hold, and that list made comparable: sources canonical, order and
// what differs between engines without meaning taken out.
[[nodiscard]] nlohmann::json resolved_mounts(const Profile& profile);
[[nodiscard]] nlohmann::json normal_resolved_mounts(const nlohmann::json& found);

}  // namespace belljar::tiers::docker
