// The two containers of a task's storage: the keeper, which holds its volumes, and the seeder, which fills them.
#pragma once

#include <string>

#include "base/error.h"
#include "tiers/docker/engine.h"
#include "tiers/docker/profile.h"
#include "tiers/docker/storage/task_storage.h"

namespace belljar::tiers::docker::storage {

// Where they have the volumes: beside each other, so that nothing of one can hide what is in the other.
inline constexpr const char* kKeptWork = "/kept/work";
inline constexpr const char* kKeptGit = "/kept/git";
// In the seeder: the streams, FIFOs of belljar's.
inline constexpr const char* kStreams = "/streams";
inline constexpr const char* kWorkStream = "work";
inline constexpr const char* kGitStream = "git";

// Memory of an engine's tmpfs volume lives while a container has it mounted. The keeper sleeps, as the task's user,
// with both volumes read-only, and without all that no container of Belljar's has. Pure.
[[nodiscard]] Profile keeper_profile(const TaskStorage& storage, const Image& image, const EngineInfo& info);

// As the keeper, but both volumes are writable, `streams` (a folder of the host with the two FIFOs) is there to read,
// and its command is the image's tar, twice. It runs nothing of what it unpacks, and no more root than the keeper: the
// volumes belong to the task's user from the start. What it writes is charged to it, so its memory is what both volumes
// may hold and some for itself. Pure.
[[nodiscard]] Profile seeder_profile(const TaskStorage& storage, const Image& image, const EngineInfo& info,
                                     const std::string& streams);

// The image by its id. Refuses one that is not there, and one that makes volumes of its own.
[[nodiscard]] base::Result<Image> helper_image(const Engine& engine, const std::string& id,
                                               const base::Deadline& deadline);

// Creates the container and holds what the engine made of it against the profile: nothing is started. Returns its id.
[[nodiscard]] base::Result<std::string> create_checked(const Engine& engine, const Profile& profile,
                                                       const base::Deadline& deadline);

}  // namespace belljar::tiers::docker::storage
