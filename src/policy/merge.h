// Several layers become one policy. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "policy/layer.h"
#include "policy/policy.h"

namespace belljar::policy {

// The rules, which docs/policy.md states for people:
//   a single value         the last layer that says it wins
//   a list                 grows by the entries of each layer, in order; a repeated entry keeps its first place
//   a host rule            replaces earlier ones for the same hosts and ports, with their options
//   a path in two lists    of `read` and `write` the later word counts; with `hide` it is refused
//   a variable             passed or set: the later word counts
//   an agent               the last layer that names one wins, whole
// Then the result must not contradict itself (policy/consistent.h). With mode "none" an agent keeps its own inner
// sandbox on: extra_arguments and the variables that only say "you are sealed" are left out. With home "empty" its
// paths of the home are.
[[nodiscard]] base::Result<Policy> merge(std::span<const PolicyLayer> layers);

// What the layers say together and nothing else, as JSON that parse_policy() reads back: a policy to be stored, over
// another that is not known yet. Layers that contradict each other are refused as merge() does.
[[nodiscard]] base::Result<std::string> said_json(std::span<const PolicyLayer> layers);

// The layer every policy starts from: jail, network denied, .git read-only.
[[nodiscard]] PolicyLayer built_in_layer();

// A layer that names an agent, with its preset when there is one.
[[nodiscard]] PolicyLayer agent_layer(std::string_view agent, std::string_view source);

// What holds when nobody says anything but the agent's name (empty: none).
[[nodiscard]] Policy built_in(std::string_view agent);

// Every host the policy lets the guest reach: the agent's own, its registries, then allow_hosts; each rule once.
// Empty when the network is not denied.
[[nodiscard]] std::vector<HostRule> reachable_hosts(const Policy& policy);

// All rules of a session under `policy`, each with its id: what denies, reachable_hosts(), the host's ports.
[[nodiscard]] std::vector<HostRule> session_rules(const Policy& policy);

}  // namespace belljar::policy
