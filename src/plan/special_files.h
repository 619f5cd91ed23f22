// Sockets and FIFOs of the host in what the guest gets: who connects or writes to one speaks to a process of the host,
// and neither a read-only mount nor landlock stops that.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/draft.h"

namespace belljar::plan {

// True when a container or virtual machine engine listens at `path`, told by its usual name or by the variables that
// lead its clients there (DOCKER_HOST and its like): whoever reaches it is root of the host, or nearly.
[[nodiscard]] bool is_engine_socket(std::string_view path,
                                    const std::map<std::string, std::string, std::less<>>& environment);

// Hides every one that the guest would see and the policy does not name by its own path; what it names is a weakening.
// Comes after every bind. Refused when there are more than can be hidden.
[[nodiscard]] base::Status add_special_files(Draft& draft);

}  // namespace belljar::plan
