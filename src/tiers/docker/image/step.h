// One container of a build, from its making to its end.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "tiers/docker/engine.h"
#include "tiers/docker/frames.h"
#include "tiers/docker/image/archive.h"
#include "tiers/docker/profile.h"

namespace belljar::tiers::docker::image {

struct Step {
  std::string container;  // its id
  Output output;
};

// Creates the container, compares what the engine made of it with the profile, puts the archive in while it has not
// started, runs it to its end and takes what it prints. An error when it ends with anything but 0, and when it is over
// after the deadline. The container is left: it is removed by its label.
[[nodiscard]] base::Result<Step> run_step(const Engine& engine, const Profile& profile, const Archive* archive,
                                          const base::Deadline& deadline);

}  // namespace belljar::tiers::docker::image
