// Which work a launch leaves for after its guest's end.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "session/recover.h"
#include "tiers/docker/reach.h"
#include "tiers/jail/program.h"
#include "workspace/kept_files.h"
#include "workspace/settled.h"

namespace belljar::session {

struct Launch {
  const plan::Plan& plan;
  const tiers::jail::Program& program;
  std::string session;
  std::string state_folder;
  const workspace::KeptFiles& agent_files;  // what the guest has copies of
};

// The works of this launch, in the order they are done. Called before the guest's command starts. Without any, no
// settler is started.
[[nodiscard]] base::Result<std::vector<workspace::Work>> works_after(const Launch& launch);

// Those in which they look for what the guest left: all that it can write. A work that cannot be read has all.
[[nodiscard]] std::vector<std::string> guarded_trees(std::span<const workspace::Work> works);

// What each of them is when it has to be done from its record, before a launch in `folder` (a real path; empty: in
// any): of a work folder that has to do with it all is looked through, however long that takes, and of others what is
// left over is left for later. `reach` must outlive it.
[[nodiscard]] std::vector<KnownWork> known_works(tiers::docker::Reach& reach, const std::string& folder);

}  // namespace belljar::session
