// A task's storage as the tests make it: two volumes of the engine's, with a little work in them.
#pragma once

#include <string>

#include "base/clock.h"
#include "tiers/docker/task/profile.h"

namespace belljar::testing {

class TaskVolumes {
 public:
  static constexpr uint64_t kBytes = 4 << 20;
  static constexpr uint64_t kFiles = 200;

  // /work holds `file`, /work/.git holds `HEAD`; all of it belongs to the task's user.
  explicit TaskVolumes(std::string task);
  ~TaskVolumes();
  TaskVolumes(const TaskVolumes&) = delete;
  TaskVolumes& operator=(const TaskVolumes&) = delete;

  [[nodiscard]] const std::string& task() const { return task_; }
  [[nodiscard]] const tiers::docker::task::Volumes& volumes() const { return volumes_; }
  // What a shell command of root's prints in a container that has both, writable, at /work and /git.
  [[nodiscard]] std::string inside(const std::string& command) const;

 private:
  std::string task_;
  tiers::docker::task::Volumes volumes_;
  std::string keeper_;
};

}  // namespace belljar::testing
