// Looking at the machine for the plan. Reads, follows links by hand, and changes and executes nothing.
#pragma once

#include <map>
#include <string>

#include "base/error.h"
#include "linux/cgroup_ground.h"
#include "plan/facts.h"
#include "policy/policy.h"
#include "session/engine_facts.h"
#include "session/walk.h"

namespace belljar::session {

// What a launch inherits from whoever starts it.
struct Launcher {
  std::map<std::string, std::string, std::less<>> environment;
  std::string folder;             // where it was started; becomes the work folder
  linux::CgroupGrounds groups{};  // where a guest's cgroup can be made
};

// That of this process. An error when the current folder is gone or out of reach.
[[nodiscard]] base::Result<Launcher> current_launcher();

// Everything make_plan() needs to know for this policy and request. An error when the work folder does not exist or a
// path of the policy makes no sense; what is merely missing is a fact. `engine` gets what a container engine has been
// asked, if it was, for the launch to go on with.
[[nodiscard]] base::Result<plan::Facts> gather_facts(const policy::Policy& policy, const plan::Request& request,
                                                     const Launcher& launcher, EngineLook* engine = nullptr);

// What `.git` of the folder at real path `work_folder` is. A linked worktree counts only when the folder it names lies
// outside the work folder, belongs to the same user, is `COMMON/worktrees/NAME` of a repository, and its file `gitdir`
// names this very `.git` (gitrepository-layout(5)): the `.git` file alone may be a guest's.
[[nodiscard]] plan::GitFact look_at_git(const std::string& work_folder, Walker& walker);

}  // namespace belljar::session
