// The options that say a policy, the same wherever a command takes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "policy/flags.h"

namespace belljar::cli {

// Functions for Option::take. The field outlives them.
[[nodiscard]] std::function<base::Status(std::string_view)> keep(std::optional<std::string>& field);
[[nodiscard]] std::function<base::Status(std::string_view)> keep(std::string& field);
[[nodiscard]] std::function<base::Status(std::string_view)> append(std::vector<std::string>& list);
[[nodiscard]] std::function<base::Status(std::string_view)> turn_on(bool& field);

// `--policy`, and every flag of policy::FlagOverrides. Both outlive what is returned.
[[nodiscard]] std::vector<Option> policy_options(policy::FlagOverrides& flags, std::optional<std::string>& policy_file);

}  // namespace belljar::cli
