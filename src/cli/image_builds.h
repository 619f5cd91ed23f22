// Builds of images as the state folder knows them: a record for each that is under way, which outlives its builder.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "session/state_folder.h"
#include "store/store.h"
#include "tiers/docker/image/registered.h"
#include "tiers/docker/reach.h"

namespace belljar::cli {

// A build that is under way. While this lives nobody takes it for dead.
class ImageBuild {
 public:
  // Writes down that things of this build may exist in that engine, before they do.
  [[nodiscard]] static base::Result<ImageBuild> begin(const std::string& state, const std::string& engine);
  ~ImageBuild();
  ImageBuild(ImageBuild&& other) noexcept = default;
  ImageBuild& operator=(ImageBuild&&) = delete;
  ImageBuild(const ImageBuild&) = delete;
  ImageBuild& operator=(const ImageBuild&) = delete;

  [[nodiscard]] const std::string& id() const { return id_; }
  // A folder of this build's own, for files; it goes with the object.
  [[nodiscard]] base::Result<std::string> make_folder() const;
  // Where folders and files of builds lie.
  [[nodiscard]] const std::string& place() const { return state_.path(); }
  // Nothing of it is left that is not registered: the record goes.
  void finish() const;

 private:
  ImageBuild(session::StateFolder state, base::Fd record, std::string id)
      : state_(std::move(state)), record_(std::move(record)), id_(std::move(id)) {}

  session::StateFolder state_;
  base::Fd record_;
  std::string id_;
};

// $XDG_STATE_HOME/belljar, or an error.
[[nodiscard]] base::Result<std::string> own_state_folder();

[[nodiscard]] base::Result<tiers::docker::image::Registry> registry_of(const std::string& state);

// Removes what builds have left whose builders died, and their records. Returns what is, or may be, left, and adds the
// builds that are finished now to `done`.
[[nodiscard]] base::Result<std::vector<std::string>> recover_builds(const std::string& state,
                                                                    tiers::docker::Reach& reach,
                                                                    std::vector<std::string>& done);

}  // namespace belljar::cli
