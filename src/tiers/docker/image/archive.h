// The packages of a lock file, found on this host, known by their content, and made into one archive for an engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "tiers/docker/image/lock.h"

namespace belljar::tiers::docker::image {

// Where in the container the archive's files come to lie.
inline constexpr const char* kBuildFolder = "belljar-build";

// A tar archive (ustar, POSIX.1-1988) in a file without a name, whose offset is at its start.
struct Archive {
  base::Fd file;
  uint64_t bytes = 0;
};

// Which archive is that of the package at this place of the lock: the first of those with the same digest.
[[nodiscard]] size_t archive_number(const Lock& lock, size_t package);

// `setup.sh` with this text, and each package's own archive as NUMBER.tgz. The packages are those
// files of `folder` that end in `.tgz` and have a digest that the lock names, whatever they are called; the digest is
// of the very bytes that were put in. Refuses when one is missing. `scratch` is a folder on the disk for the result.
[[nodiscard]] base::Result<Archive> make_archive(const Lock& lock, std::string_view script, const std::string& folder,
                                                 const std::string& scratch, const base::Deadline& deadline);

}  // namespace belljar::tiers::docker::image
