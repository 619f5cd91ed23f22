// What the tests with a container engine share: one engine and its images, for one test program.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "docker/engine.h"
#include "tiers/docker/engine.h"

namespace belljar::testing {

class DockerWorld {
 public:
  static constexpr const char* kImage = "belljar-test:busybox";

  // Made at the first call; ends with the program. Aborts without an engine.
  static DockerWorld& get();
  // Ends the engine; the program calls it last.
  static void end();

  [[nodiscard]] const tiers::docker::Engine& engine() const { return *engine_; }
  [[nodiscard]] const std::string& socket() const { return test_engine_.socket(); }
  // A process in the engine's network namespace, when the engine is the test's own.
  [[nodiscard]] pid_t engine_process() const { return test_engine_.process(); }
  // Of kImage: a static busybox with PATH=/usr/local/bin:/bin.
  [[nodiscard]] const std::string& image_id() const { return image_id_; }

 private:
  DockerWorld();
  TestEngine test_engine_;
  std::unique_ptr<tiers::docker::Engine> engine_;
  std::string image_id_;
};

// An image of the root that the tar archive `path` holds; its id.
[[nodiscard]] base::Result<std::string> import_root(const tiers::docker::Engine& engine, const std::string& path,
                                                    std::string_view tag, const std::vector<std::string>& changes);

// The containers of sessions that the world's engine has. The test fails when it cannot say.
[[nodiscard]] std::vector<tiers::docker::Owned> session_containers();
// What a failed case has left of them.
void remove_session_containers();

}  // namespace belljar::testing
