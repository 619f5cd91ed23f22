// Launches that are kept, so that another like it can be started.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "plan/facts.h"
#include "policy/flags.h"
#include "policy/policy.h"
#include "store/standing.h"

namespace belljar::cli {

struct KeptLaunch {
  policy::Policy policy;
  plan::Request request;
  std::string folder;           // real path of the work folder; on a target, of the one that was current here
  std::string target_folder{};  // the work folder on a target: absolute, or below `~`
};

// Keeps it under the id of its session. Values that --env gave are not kept, only their names.
[[nodiscard]] base::Status keep_launch(const store::Places& places, const std::string& session,
                                       const KeptLaunch& launch);

// What the launch of session `id` was launched with, whatever policies say by now, and enters its work folder, which
// must be the same one still. `flags` may hold nothing but the values of --env that were not kept.
[[nodiscard]] base::Result<KeptLaunch> resume_launch(const store::Places& places, const std::string& id,
                                                     const policy::FlagOverrides& flags);

}  // namespace belljar::cli
