// The door by which `belljar reload` gives a running session other rules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "egress/rule_feed.h"
#include "plan/plan.h"
#include "session/state_folder.h"

namespace belljar::session {

// In the state folder: the door itself, which the launcher keeps open, with a shared lock (flock(2)) as long as it
// lives; its bell; and beside them what `belljar reload` has to know of the launch.
inline constexpr std::string_view kDoor = ".rules";
inline constexpr std::string_view kBell = ".bell";
inline constexpr std::string_view kLaunchRecord = ".launch";

// The launcher's side, made before it seals itself. Both invalid: this session takes no other rules.
struct RuleDoor {
  base::Fd file;
  base::Fd bell;  // not inotify(7): its close waits for a grace period of the kernel's, longer than a launch takes
};

// Makes the door. An error when the state folder is not there to have, or the guest of this plan sees it: a
// guest that opens its own way out would be none.
[[nodiscard]] base::Result<RuleDoor> make_rule_door(const std::string& state_folder, const std::string& session,
                                                    std::string_view launch_record, const plan::Plan& plan);

// The sessions whose launchers live. What dead ones have left is removed.
[[nodiscard]] base::Result<std::vector<std::string>> live_sessions(const StateFolder& state);

// From now on, until `state` is closed, nobody else changes rules: whoever adds to what was said before reads that
// under this lock. Waits for its turn.
[[nodiscard]] base::Status lock_rules(const StateFolder& state);

// Gives `update` to the session and waits for what has become of it: the launcher's own line, `taken N` or why not.
[[nodiscard]] base::Result<std::string> send_rules(const StateFolder& state, const std::string& session,
                                                   const egress::RuleUpdate& update);

}  // namespace belljar::session
