// The probe's look at what a container was given to keep: files, an environment, the folders of a task.
#pragma once

#include <string_view>
#include <vector>

#include "guest/config.h"
#include "guest/finding.h"

namespace belljar::guest {

// Each file of the config is there, itself and not to be written, or is not there.
[[nodiscard]] Finding check_files(const Config& config);

// `environment` is what the container's first process was started with: exactly what the config says, and HOSTNAME,
// which engines add. Of what is other, the name is told and not the value.
[[nodiscard]] Finding check_environment(const Config& config, const std::vector<std::string_view>& environment);

// The work folder of a task is a mount of its own, the guest's own, and its metadata another one: neither is the other
// one again, nor a part of it.
[[nodiscard]] Finding check_task_folders(const Config& config);

}  // namespace belljar::guest
