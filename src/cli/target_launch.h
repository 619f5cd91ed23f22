// Launches on another machine, and the end of one over there.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "cli/command.h"
#include "cli/kept_launch.h"
#include "remote/launch_order.h"
#include "session/signals.h"

namespace belljar::cli {

struct TargetLaunch {
  const KeptLaunch& launch;
  const std::string& session;
  const std::map<std::string, std::string, std::less<>>& environment;  // of this launcher
  remote::Use use = remote::Use::kRun;
  bool json = false;
  std::string link_timeout;  // a duration as text; empty: 30 s
  std::string report{};      // out: the settlement
  std::optional<session::SignalsHeld>
      held{};  // from when the guest may be there, so that a signal leaves no report empty
};

// Launches it on the ssh target of its policy; what is known of the target is remembered, and the two programs are
// copied there when it lacks them. Returns the exit code of the belljar there.
[[nodiscard]] base::Result<int> launch_on_target(const Context& context, TargetLaunch& launch, bool report);

// `belljar target check|show TARGET`.
[[nodiscard]] int target_command(const Context& context, std::span<const std::string> arguments);
// `belljar remote-end`: the other end of a link; for belljar itself.
[[nodiscard]] int remote_end_command(const Context& context, std::span<const std::string> arguments);

}  // namespace belljar::cli
