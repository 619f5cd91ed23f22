// One launch of a task: unattended, with a phase, in a container of the task profile.
#pragma once

#include <optional>

#include "base/error.h"
#include "session/run.h"
#include "session/settlement.h"
#include "tiers/docker/engine.h"
#include "tiers/docker/task/credential.h"
#include "tiers/docker/task/invocation.h"
#include "tiers/docker/task/profile.h"

namespace belljar::session {

// What an invocation is carried out with. Credential and sealed inputs are what its request says that comes along.
struct TaskInputs {
  tiers::docker::task::Volumes volumes;
  tiers::docker::task::Credential credential{};
  std::optional<tiers::docker::task::SealedInput> schema{};
  std::optional<tiers::docker::task::SealedInput> certificates{};
};

// As run(). `image` is the request's. The staged credential is in the same hands as the container from before either is
// there, and goes after it.
[[nodiscard]] base::Result<Settlement> run_task(const tiers::docker::task::Invocation& invocation,
                                                const tiers::docker::Engine& engine, const tiers::docker::Image& image,
                                                TaskInputs inputs, RunOptions options, plan::Plan& plan);

}  // namespace belljar::session
