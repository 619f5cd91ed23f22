// A task as a person makes it, for tests that run its phases.
#pragma once

#include <map>
#include <string>

#include "support/process.h"

namespace belljar::testing {

// A project with `file` in its last commit, an image that counts as built here, and `belljar task create`; `belljar
// task rm` at the end. `root` is the folder for all of it, with `state` as XDG_STATE_HOME.
class TestTask {
 public:
  static constexpr uint64_t kBytes = 4 << 20;
  static constexpr uint64_t kFiles = 200;

  // `image` is an id that the engine has; `engine` the socket by which the task knows it.
  TestTask(std::string root, const std::string& image, std::string engine);
  ~TestTask();
  TestTask(const TestTask&) = delete;
  TestTask& operator=(const TestTask&) = delete;

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] Command belljar(std::vector<std::string> words) const;

 private:
  std::string root_;
  std::string engine_;
  std::string id_;
};

// The id of an image like DockerWorld::kImage, with a `claude` and a `codex` that do what their prompt says. Made once.
[[nodiscard]] const std::string& agents_image();

}  // namespace belljar::testing
