#include "plan/validate_for_target.h"

#include <utility>

#include "policy/hook_url.h"
#include "policy/preset.h"
#include "policy/target.h"
#include "policy/values.h"

namespace belljar::plan {
namespace {

using policy::Mode;
using policy::Network;

base::Status check_ssh(const policy::Policy& policy) {
  const auto& isolation = policy.isolation;
  if (!isolation.expose.empty() && isolation.network == Network::kDeny) {
    return base::refuse("isolation.expose", policy::to_text(isolation.expose.front()),
                        "it would listen on the target's loopback, not on this host's, refusing",
                        "leave it out; a port of the target's own is reached by 'ssh -L'");
  }
  if (!isolation.host_ports.empty()) {
    return base::refuse("isolation.host_ports", std::to_string(isolation.host_ports.front().port.value_or(0)),
                        "it would be a port of the target's loopback, not of this host's, refusing",
                        "leave it out, or run belljar on the target itself");
  }
  if (const auto url = policy::parse_hook_url(policy.hook.url); url && policy::is_loopback(url->host)) {
    return base::refuse("hook.url", policy.hook.url, "on the target that is the target's own loopback, refusing",
                        "name an address of the control host that the target reaches");
  }
  if (!policy.audit.file.empty()) {
    return base::refuse("audit.file", policy.audit.file, "it would be written on the target, refusing",
                        "leave it out; the settlement (--report) comes here");
  }
  return {};
}

}  // namespace

base::Status validate_for_target(const policy::Policy& policy, TargetKind target, LaunchKind launch) {
  if (target == TargetKind::kSsh) return check_ssh(policy);
  if (target == TargetKind::kMachine && launch == LaunchKind::kSession && policy.isolation.mode != Mode::kNone) {
    return base::refuse("isolation.mode", policy::name_of_value(policy.isolation.mode, policy::kModes),
                        "a disposable machine is already the isolation, refusing",
                        "say mode = \"none\", network = \"allow\" for it, or use another target");
  }
  return {};
}

policy::Policy policy_on(policy::Policy policy, TargetKind target, LaunchKind launch) {
  if (target != TargetKind::kMachine || launch != LaunchKind::kTask) return policy;
  policy.isolation = policy::Isolation{};
  policy.isolation.mode = Mode::kNone;
  policy.isolation.network = Network::kAllow;
  policy::keep_inner_sandbox(policy.agent);
  return policy;
}

}  // namespace belljar::plan
