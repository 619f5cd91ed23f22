// What a task's work lies in: two volumes of the engine's in memory, held by a container of their own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "tiers/docker/engine.h"

namespace belljar::tiers::docker::storage {

// On everything of a task: volumes, keeper, seeder, and the containers that use them.
inline constexpr const char* kTaskLabel = "belljar.task";
// On what one allocation made; random, so that nobody else's bears it. What is removed is found by it.
inline constexpr const char* kAllocationLabel = "belljar.allocation";
inline constexpr const char* kPartLabel = "belljar.part";  // "work", "git", "keeper", "seeder"

// Whose the files in the volumes are, and who works on them.
inline constexpr uid_t kTaskUser = 10001;
inline constexpr gid_t kTaskGroup = 10001;

// Where a task's container has them.
inline constexpr const char* kWorkTarget = "/work";
inline constexpr const char* kGitTarget = "/work/.git";  // an empty folder in the work volume; read-only always

// Bytes are whole pages: tmpfs(5) rounds up, and what is compared is the rounded number.
struct Ceilings {
  uint64_t work_bytes = 0;
  uint64_t work_files = 0;
  uint64_t git_bytes = 0;
  uint64_t git_files = 0;
};

struct Volume {
  std::string name;  // recorded before it is made
  uint64_t bytes = 0;
  uint64_t files = 0;      // inodes, its root included
  std::string mountpoint;  // the engine's word; empty until it was made
};

// As it is recorded. look_up() holds it against the engine; nothing of a record is believed before.
struct TaskStorage {
  std::string task;        // 16 hex digits
  std::string allocation;  // 32
  std::string clone;       // the Clone that it is bound to, by its token
  std::string image_id;    // of keeper and seeder
  Volume work;
  Volume git;
  std::string keeper;     // its name
  std::string keeper_id;  // empty until it was made
};

[[nodiscard]] uint64_t page_rounded(uint64_t bytes);

// A new storage's record: names and ceilings, and nothing of it made yet. `task` is 16 hex digits; `allocation` and
// `clone` likewise come from the caller.
[[nodiscard]] TaskStorage plan_storage(std::string task, std::string allocation, std::string clone,
                                       std::string image_id, const Ceilings& ceilings);
// What it takes of the pool of memory, at most: all of both volumes.
[[nodiscard]] uint64_t bytes_of(const TaskStorage& storage);

// As bytes for the store, and back.
[[nodiscard]] std::string encode(const TaskStorage& storage);
[[nodiscard]] base::Result<TaskStorage> decode_storage(std::string_view record);

// Asks the engine for both volumes and the keeper of a record: each must be as it was made (type, ceilings, owner,
// labels, exactly), and the keeper be running, else the content is gone. Fills in the mountpoints.
[[nodiscard]] base::Result<TaskStorage> look_up(const Engine& engine, TaskStorage recorded,
                                                const base::Deadline& deadline);

}  // namespace belljar::tiers::docker::storage
