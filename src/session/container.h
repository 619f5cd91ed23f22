// A session in a container of an engine's.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "plan/plan.h"
#include "session/engine_facts.h"
#include "session/run.h"
#include "session/settlement.h"
#include "tiers/docker/launch.h"
#include "tiers/docker/reach.h"
#include "workspace/kept_files.h"
#include "workspace/settled.h"

namespace belljar::session {

// As run(), for a plan with Mode::kDocker. The container bears the session's label from its making on; the settler
// removes it, whatever becomes of the launcher, and what it cannot remove is in the settlement as unreleased. `look` is
// what the plan was made from.
[[nodiscard]] base::Status run_container(const plan::Plan& plan, RunOptions& options, const EngineLook& look,
                                         Settlement& settlement);

// What one kind of container needs beside what all need.
struct ContainerRecipe {
  // Called once whatever it makes is known to somebody who will remove it.
  std::function<base::Result<tiers::docker::Prepared>(tiers::docker::Meeting& meeting)> prepare;
  std::vector<workspace::Work> works{};  // after the guest's end
  std::string more{};                    // another folder that goes when the container is proven gone, or empty
  base::Deadline deadline{};             // nothing of the guest is left by then; never: the plan's wall time counts
};
[[nodiscard]] base::Status run_in_container(const plan::Plan& plan, RunOptions& options,
                                            const tiers::docker::Engine& engine, ContainerRecipe recipe,
                                            Settlement& settlement);

// A folder of this launcher's alone: state/NAME.
[[nodiscard]] base::Result<std::string> own_folder(const RunOptions& options, const std::string& name);

inline constexpr const char* kContainerRemoval = "container";
// The removal from its record alone.
[[nodiscard]] base::Result<workspace::Settled> remove_recorded_container(std::string_view record,
                                                                         tiers::docker::Reach& reach);

}  // namespace belljar::session
