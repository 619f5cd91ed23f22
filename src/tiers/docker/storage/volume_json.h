// A volume as the engine is asked for it, and the engine's own word of what it made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tiers/docker/storage/task_storage.h"

namespace belljar::tiers::docker::storage {

enum class Part : uint8_t { kWork, kGit };

[[nodiscard]] const char* part_name(Part part);
[[nodiscard]] const Volume& volume_of(const TaskStorage& storage, Part part);

// Every value of an engine's answer about a volume that is compared. One without an entry in the table of
// volume_json.cc, and one without a mutation in tests/docker/volume_mutation_test.cc, does not compile.
enum class VolumeField : uint8_t {
  kName,
  kDriver,
  kScope,
  kType,
  kDevice,
  kOptions,
  kOtherOptions,
  kLabels,
  kMountpoint,
  kStatus,
  kOther,
  kCount
};
[[nodiscard]] const char* field_name(VolumeField field);

// The body of POST /volumes/create: a tmpfs of the local driver with both ceilings, nosuid, nodev, owned by the task's
// user (docker volume create(1); the options go to mount(2) as they stand). Pure.
[[nodiscard]] std::string create_request(const TaskStorage& storage, Part part);

// `inspected` is the body of GET /volumes/{name}. Refuses unless every VolumeField is as it was asked for; returns the
// mountpoint. An engine answers a create of a name that it has already with what it has: labels of another allocation
// tell. Pure.
[[nodiscard]] base::Result<std::string> check_volume(const TaskStorage& storage, Part part, std::string_view inspected);

// The `filters` of a list of containers: those that have this volume.
[[nodiscard]] std::string volume_filter(std::string_view name);
// GET /containers/{id}/json and POST /containers/{id}/wait.
[[nodiscard]] bool is_running(std::string_view inspected);
[[nodiscard]] base::Result<int64_t> read_exit_code(std::string_view waited);

}  // namespace belljar::tiers::docker::storage
