// What differs when the guest is a container of an engine's: its system comes from an image, not from this host.
#pragma once

#include <string>

#include "base/error.h"
#include "plan/draft.h"
#include "plan/plan.h"

namespace belljar::plan {

// The image of a policy that names none.
inline constexpr const char* kDefaultImage = "debian:bookworm-slim";

// What an engine cannot give is refused, never left out: nested sandboxes, a required transparent way, a limit of
// processes (RLIMIT_NPROC would count those of the person too).
[[nodiscard]] base::Status check_container(const policy::Policy& policy, const Facts& facts);

// The mounts of a container: its scratch, the private home, the work folder, and what agent and policy are given.
[[nodiscard]] base::Status add_container_mounts(Draft& draft);

// Accounts in which the guest's own user is found.
void add_container_accounts(Draft& draft);

// PATH is the image's; what the image sets and the plan does not is the agent's too.
void add_image_environment(const Facts& facts, std::vector<EnvVar>& env);

}  // namespace belljar::plan
