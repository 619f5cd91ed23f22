// A clone's files into a task's volumes.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "tiers/docker/engine.h"
#include "tiers/docker/image/registered.h"
#include "tiers/docker/storage/task_storage.h"
#include "workspace/clone.h"

namespace belljar::tiers::docker::storage {

// Fills, by a container of a registered image, both volumes of `storage` from the clone that it is bound to, and from
// no other. The archive is made here and read by the seeder's tar from FIFOs in `streams`, a new folder below an
// existing one of this user's alone: checkout and metadata each into its own volume, so that the two never have to fit
// in one, and by no way through the engine. The clone is verified before and after. One deadline; the seeder is gone
// afterwards, or named in the error with its label.
[[nodiscard]] base::Status seed(const Engine& engine, const image::RegisteredImage& image, const TaskStorage& storage,
                                const workspace::Clone& clone, const std::string& streams,
                                const base::Deadline& deadline);

// The parts of seed(), for tests and benches that take one away or time one alone.
class Seeder {
 public:
  // Makes the FIFOs; creates the container, holds it against its profile, and starts it.
  [[nodiscard]] static base::Result<Seeder> start(const Engine& engine, const image::RegisteredImage& image,
                                                  const TaskStorage& storage, const workspace::Clone& clone,
                                                  const std::string& streams, const base::Deadline& deadline);
  // Writes both archives and waits for the seeder's end. Not to be called again.
  [[nodiscard]] base::Status run(const Engine& engine, const workspace::Clone& clone, const base::Deadline& deadline);

 private:
  Seeder(std::string id, std::string streams) : id_(std::move(id)), streams_(std::move(streams)) {}
  base::Status feed(const Engine& engine, const workspace::Clone& clone, workspace::TreeKind kind,
                    const base::Deadline& deadline) const;

  std::string id_;
  std::string streams_;
};

}  // namespace belljar::tiers::docker::storage
