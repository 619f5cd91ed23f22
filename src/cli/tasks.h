// Tasks as the state folder knows them: a record in the store, and a folder with the clone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "store/store.h"
#include "tiers/docker/engine.h"
#include "tiers/docker/reach.h"
#include "tiers/docker/storage/task_storage.h"
#include "workspace/clone.h"
#include "workspace/work_manifest.h"

namespace belljar::cli {

struct TaskWish {
  std::string project;  // a folder
  std::string image;    // a registered image: id, its first digits, or its tag
  std::string engine;   // DOCKER_HOST's value
  // Ceilings; 0: worked out from what the project takes.
  uint64_t work_bytes = 0, work_files = 0, git_bytes = 0, git_files = 0;
};

struct RecoveredTask {
  std::string id;
  std::string what;  // was done
};

// A task whose folder is locked: nobody else creates, removes, reads or recovers it meanwhile.
struct LockedTask {
  store::Task task;
  std::string folder;
  base::Fd lock;
};

// Everything of a task that is read back.
struct TaskWork {
  workspace::Clone clone;
  workspace::Manifest manifest;
};

class Tasks {
 public:
  // $XDG_STATE_HOME/belljar, its store, and `tasks` in it, which are made when missing.
  [[nodiscard]] static base::Result<Tasks> open();

  // Clone, volumes, keeper, seeding, within one deadline. What an error leaves is removed, or named in it, and
  // recover() tries again.
  [[nodiscard]] base::Result<store::Task> create(const TaskWish& wish, const base::Deadline& deadline) const;
  [[nodiscard]] base::Result<std::vector<store::Task>> list() const { return store_.tasks(); }
  // Refuses while a container has one of its volumes.
  [[nodiscard]] base::Status remove(const std::string& id, const base::Deadline& deadline) const;
  // Gives a task up whose engine gives no answer until the deadline: its clone, its record and its share of the pool
  // go. Returns what the engine may still have of it, which nothing here knows of any more. Refuses while it answers.
  [[nodiscard]] base::Result<std::string> forget(const std::string& id, const base::Deadline& deadline) const;
  // Removes what killed launchers left unfinished, and nothing of a task that is ready but a left seeder. What could
  // not be done is in `errors`. A task that somebody is at is left alone.
  [[nodiscard]] base::Result<std::vector<RecoveredTask>> recover(tiers::docker::Reach& reach,
                                                                 std::vector<base::Error>& errors) const;

  // By its id or the id's first four or more digits. Refuses one that is not ready.
  [[nodiscard]] base::Result<LockedTask> find(const std::string& id) const;
  // The storage of a ready task, held against the engine.
  [[nodiscard]] static base::Result<tiers::docker::storage::TaskStorage> storage_of(const store::Task& task,
                                                                                    const tiers::docker::Engine& engine,
                                                                                    const base::Deadline& deadline);
  // Holds metadata against the clone, and works out what has changed. Refuses while a container has a volume.
  [[nodiscard]] static base::Result<TaskWork> read(const LockedTask& task, const base::Deadline& deadline);

  [[nodiscard]] base::Result<uint64_t> pool() const;
  [[nodiscard]] base::Status set_pool(uint64_t bytes) const { return store_.set_pool(bytes); }

 private:
  Tasks(std::string state, std::string folder, base::Fd fd, store::Store store)
      : state_(std::move(state)), folder_(std::move(folder)), fd_(std::move(fd)), store_(std::move(store)) {}

  [[nodiscard]] base::Result<base::Fd> make_folder(const std::string& id) const;
  // As find(), in any state.
  [[nodiscard]] base::Result<LockedTask> find_any(const std::string& id) const;
  [[nodiscard]] base::Status recover_one(const store::Task& task, tiers::docker::Reach& reach,
                                         std::vector<RecoveredTask>& done) const;
  [[nodiscard]] base::Status recover_strays(const std::vector<store::Task>& known,
                                            std::vector<RecoveredTask>& done) const;
  // Engine's things, folder and record, in that order; what is left stays recorded.
  [[nodiscard]] base::Status take_down(store::Task task, bool settle, const base::Deadline& deadline) const;

  std::string state_;
  std::string folder_;
  base::Fd fd_;
  store::Store store_;
};

}  // namespace belljar::cli
