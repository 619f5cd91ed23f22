// What lies in a task's volumes, read from outside.
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/tar.h"
#include "tiers/docker/engine.h"
#include "tiers/docker/storage/task_storage.h"
#include "tiers/docker/storage/volume_json.h"

namespace belljar::tiers::docker::storage {

// Has the engine archive a volume where the keeper has it, and gives `sink` its entries: paths are relative to the
// volume's root (which itself is left out), normal, and below it. Nothing is followed and nothing unpacked; bytes and
// entries beyond the volume's ceilings (a file of nothing but a hole has a size, too) are refused. The engine leaves
// sockets out. The caller sees to it that nobody writes meanwhile: check_unused().
[[nodiscard]] base::Status read_volume(const Engine& engine, const TaskStorage& storage, Part part,
                                       base::TarReader::Sink& sink, const base::Deadline& deadline);

}  // namespace belljar::tiers::docker::storage
