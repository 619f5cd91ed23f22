// The packages of a lock file, from the registry that npm of this host is set up for.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "tiers/docker/image/lock.h"

namespace belljar::tiers::docker::image {

// Puts each package's archive into `folder`, which must be there, by `npm pack`, which runs no script of theirs. What
// npm brings is not believed: make_archive() knows each by its digest. npm and all that it started are killed at the
// deadline, and when this process dies.
[[nodiscard]] base::Status fetch_packages(const Lock& lock, const std::string& folder, const base::Deadline& deadline);

}  // namespace belljar::tiers::docker::image
