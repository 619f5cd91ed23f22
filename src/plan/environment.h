// The guest's environment, rebuilt from nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/draft.h"

namespace belljar::plan {

// True for names that usually hold a secret: shown as *** in a plan.
[[nodiscard]] bool looks_secret(std::string_view name);

// PATH of the guest: the person's, in its order, without what the guest does not have.
[[nodiscard]] std::string guest_path(Draft& draft);

// The person's shell when the guest has it, else /bin/sh.
[[nodiscard]] std::string guest_shell(const Draft& draft);

// Everything the command sees, sorted by name. Names come, each over the ones before, from the short list that is
// always passed (language, time zone, terminal), what the plan sets (PATH, HOME, USER, …), the way out, the agent's
// preset, its credentials, and the policy's `env`. Nothing else of the launcher's environment is passed.
// Refuses a name or value that execve(2) cannot carry.
[[nodiscard]] base::Result<std::vector<EnvVar>> make_environment(Draft& draft, const std::string& start,
                                                                 uint16_t proxy_port);

}  // namespace belljar::plan
