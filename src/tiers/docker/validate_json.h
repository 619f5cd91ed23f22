// A profile as the engine is asked for it, and the engine's own word of what it made, checked against it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tiers/docker/profile.h"

namespace belljar::tiers::docker {

// The body of POST /containers/create. Pure.
[[nodiscard]] std::string create_request(const Profile& profile);

struct Difference {
  Field field = Field::kCount;
  std::string expected;  // made safe to print, and cut; of the environment the names only
  std::string found;
};

// `inspected` is the body of GET /containers/{id}/json of a container that was created and not started: the engine's
// resolved configuration. Every Field must be as the profile says, sets without order and without duplicates, nothing
// more, less or other; a key that this version does not know must be empty. Pure. An error when it is no JSON.
[[nodiscard]] base::Result<std::vector<Difference>> differences(const Profile& profile, std::string_view inspected);
// Refuses unless there are none, naming each: field, expected, found.
[[nodiscard]] base::Status validate(const Profile& profile, std::string_view inspected);

// Refuses an engine whose containers would not have its builtin seccomp profile, or that cannot hold the limits.
[[nodiscard]] base::Status check_engine(const EngineInfo& info);
// The engine knows `seccomp=builtin` (API 1.42); an older one has it unless its own configuration says otherwise, which
// check_engine() looks at.
[[nodiscard]] bool knows_builtin_seccomp(const EngineInfo& info);

}  // namespace belljar::tiers::docker
