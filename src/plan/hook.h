// The hook of a launch: what is relayed to the control host for the agent. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "plan/draft.h"
#include "plan/facts.h"
#include "plan/plan.h"
#include "policy/policy.h"

namespace belljar::plan {

// The key under which Facts::paths has the program that posts events; no path has this form.
inline constexpr const char* kNotifyFact = "belljar notify";
// Where a guest with a hook finds it, as `belljar`.
inline constexpr const char* kNotifyFolder = "/run/belljar";

// Gives the guest that program, when there is a hook and a relay to it.
void add_notify(Draft& draft);

// The variable by which a guest knows where its callbacks go.
inline constexpr const char* kHookVariable = "BELLJAR_HOOK_URL";

// What `policy` says of the hook, checked: a token needs a URL; one of a variable needs a value that can stand in a
// header field, and is refused when a variable of the guest (`env`) holds it or has its name. Empty without a URL.
[[nodiscard]] base::Result<policy::Hook> make_hook(const policy::Policy& policy, const Facts& facts,
                                                   const std::vector<EnvVar>& env);

// The file for the session's token as an absolute path; refused where one of `mounts` would show it to the guest.
[[nodiscard]] base::Result<std::string> place_token_file(const policy::Hook& hook, const Facts& facts,
                                                         const std::vector<Mount>& mounts);

// The value of kHookVariable; empty without a hook. With the host's network the agent calls the control host itself.
[[nodiscard]] std::string hook_of_guest(const policy::Policy& policy);

}  // namespace belljar::plan
