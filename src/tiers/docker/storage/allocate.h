// A task's storage comes into being, and goes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "tiers/docker/engine.h"
#include "tiers/docker/image/registered.h"
#include "tiers/docker/storage/task_storage.h"

namespace belljar::tiers::docker::storage {

// Keeps the record: with the names before anything is made, with the ids after. An error of it ends the allocation.
using Record = std::function<base::Status(const TaskStorage&)>;

// Makes, of an image that was registered, both volumes and starts the keeper, each held against what was asked before
// the next. One deadline for all of it, and an answer after it counts as none. On an error all of it is removed again,
// within a budget of its own; what could not be is in the error, by name and label, and release() tries again.
[[nodiscard]] base::Result<TaskStorage> allocate(const Engine& engine, const image::RegisteredImage& image,
                                                 TaskStorage planned, const Record& record,
                                                 const base::Deadline& deadline);

// What could not be seen to be gone. Empty: nothing of it is there.
struct Released {
  std::vector<std::string> unreleased;
};

// Removes what bears the storage's allocation label: containers, then volumes. Nothing is removed by its name alone.
// With `settle` it waits a moment for what a create may still bring whose answer never came. Can be done again.
[[nodiscard]] Released release(const std::string& engine_socket, const TaskStorage& storage, bool settle,
                               const base::Deadline& deadline);
// The same for its seeder alone.
[[nodiscard]] Released release_seeder(const std::string& engine_socket, const TaskStorage& storage, bool settle,
                                      const base::Deadline& deadline);

// Refuses when a container other than the keeper has one of the volumes: somebody may be writing.
[[nodiscard]] base::Status check_unused(const Engine& engine, const TaskStorage& storage,
                                        const base::Deadline& deadline);

}  // namespace belljar::tiers::docker::storage
