// What of a launch says its policy: kept beside a running session, so that its rules can be made anew.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/command.h"
#include "policy/flags.h"
#include "policy/policy.h"
#include "session/facts.h"

namespace belljar::cli {

struct LaunchRecord {
  std::string folder;                      // where it was started
  std::optional<std::string> policy_file;  // absolute
  std::string command;                     // its first word, which may name an agent
  policy::FlagOverrides flags;             // those about agent, network and hosts; no others
  std::string policy{};                    // of a launch that keeps its policy whatever files say by now: all of it
};

[[nodiscard]] std::string encode(const LaunchRecord& record);
// An error for the bytes of another version of Belljar, too.
[[nodiscard]] base::Result<LaunchRecord> decode_launch_record(std::string_view bytes);

// The policy of a launch: what stands for the folder, the file and the flags. Notes for the person go to context.err.
[[nodiscard]] base::Result<policy::Policy> load_policy(const Context& context, const session::Launcher& launcher,
                                                       const LaunchRecord& record);

}  // namespace belljar::cli
