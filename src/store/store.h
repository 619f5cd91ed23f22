// What Belljar remembers between launches: the default policy of a project, the policy files that a person trusts, the
// images it has built, and tasks. What is written at launches is not in here (launch_log.h), so that most launches find
// no store and open none.
// One SQLite file, `belljar.db`, in Belljar's own state folder, which no guest ever sees.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/database.h"

namespace belljar::store {

// A folder as it was when a person spoke about it: its real path, and what stands there.
struct FolderId {
  std::string path;
  uint64_t device = 0;
  uint64_t inode = 0;

  bool operator==(const FolderId&) const = default;
};

// Follows links; an error when there is no such folder.
[[nodiscard]] base::Result<FolderId> identify(const std::string& folder);

// One file of a policy with everything it extends, as it was read: the trust is in these bytes.
struct PolicyFile {
  std::string path;
  std::string text;

  bool operator==(const PolicyFile&) const = default;
};

struct Project {
  std::string folder;  // real path
  std::string policy;  // its default policy, as text that policy::parse_policy() reads
};

// What a launch was launched with, to start another like it. No value that `--env NAME=VALUE` gave and no token is in
// it: `asked_env` names what a person has to give again.
struct Launch {
  std::string id;  // of its session
  FolderId folder;
  std::string policy;  // text that policy::parse_policy() reads, byte for byte as it was kept
  std::vector<std::string> command;
  std::string chdir;
  std::vector<std::string> asked_env;
  std::string target_folder{};  // the work folder on the target of the policy, when that is another machine

  bool operator==(const Launch&) const = default;
};

// An image that `belljar image build` has made. What is not here is no image of Belljar's, whatever it says of itself.
struct BuiltImage {
  std::string id;      // the content's: "sha256:" and 64 hex digits
  std::string tag;     // that it was given, so that an engine's clean-up spares it
  std::string engine;  // the socket of the engine that it was built in
  std::string pins;    // what went into it, a line each
  int64_t made = 0;    // seconds since 1970

  bool operator==(const BuiltImage&) const = default;
};

// How far a task's storage is. What is not ready is nobody's to use, and `belljar recover` removes it.
enum class TaskState : uint8_t { kAllocating, kReady, kRemoving };

// A task and what it takes of the pool. `clone` and `storage` are records of whoever made them.
struct Task {
  std::string id;
  TaskState state = TaskState::kAllocating;
  std::string project;  // real path
  std::string engine;   // the socket of the engine that has its storage
  uint64_t bytes = 0;   // of memory, at most
  std::string clone{};
  std::string storage{};
  int64_t made = 0;  // seconds since 1970

  bool operator==(const Task&) const = default;
};

// Why a folder's policy file is not used, or that it is.
enum class Trust : uint8_t {
  kTrusted,
  kNever,         // nobody has spoken about this folder
  kOtherFolder,   // another folder stands at that path now
  kOtherContent,  // the file, or one that it extends, has changed since
};

class Store {
 public:
  // For writing; makes the folder (0700) and the file (0600) when they are missing. A folder that others may write to,
  // or that belongs to somebody else, is refused.
  [[nodiscard]] static base::Result<Store> open(const std::string& state_folder);
  // For reading; empty when nothing was ever stored.
  [[nodiscard]] static base::Result<std::optional<Store>> open_existing(const std::string& state_folder);

  [[nodiscard]] base::Status set_project(const Project& project) const;
  // That of `folder` itself or of the nearest folder above it.
  [[nodiscard]] base::Result<std::optional<Project>> project_of(const std::string& folder) const;
  [[nodiscard]] base::Result<std::vector<Project>> projects() const;
  // False when there was none.
  [[nodiscard]] base::Result<bool> remove_project(const std::string& folder) const;

  // One that an earlier version kept here (see launch_log.h). An error when a newer one kept it in a way that this one
  // does not know.
  [[nodiscard]] base::Result<std::optional<Launch>> launch(const std::string& id) const;

  // What a check of an ssh target found, as text of whoever checked it.
  [[nodiscard]] base::Status remember_target(const std::string& name, const std::string& facts) const;
  [[nodiscard]] base::Result<std::optional<std::string>> target(const std::string& name) const;

  // Replaces one with the same id: the same content was built again.
  [[nodiscard]] base::Status register_image(const BuiltImage& image) const;
  // The newest first.
  [[nodiscard]] base::Result<std::vector<BuiltImage>> built_images() const;
  // False when it was not registered.
  [[nodiscard]] base::Result<bool> unregister_image(const std::string& id) const;

  // An attempt of a task, once and for all: an error when its id is known already.
  [[nodiscard]] base::Status claim_attempt(const std::string& id, const std::string& request) const;
  // The bytes that it was claimed with.
  [[nodiscard]] base::Result<std::optional<std::string>> attempt(const std::string& id) const;

  // Records a new task, unless all of them together would then take more than the pool: in one step, so that two at a
  // time cannot both have the last of it. `default_pool` counts when none was set.
  [[nodiscard]] base::Status admit_task(const Task& task, uint64_t default_pool) const;
  [[nodiscard]] base::Status update_task(const Task& task) const;
  [[nodiscard]] base::Result<std::optional<Task>> task(const std::string& id) const;
  // The oldest first.
  [[nodiscard]] base::Result<std::vector<Task>> tasks() const;
  // What it had of the pool is free.
  [[nodiscard]] base::Status remove_task(const std::string& id) const;
  [[nodiscard]] base::Status set_pool(uint64_t bytes) const;
  [[nodiscard]] base::Result<std::optional<uint64_t>> pool() const;

  [[nodiscard]] base::Status trust(const FolderId& folder, const std::vector<PolicyFile>& files) const;
  [[nodiscard]] base::Result<Trust> judge(const FolderId& folder, const std::vector<PolicyFile>& files) const;
  [[nodiscard]] base::Result<std::vector<std::string>> trusted_folders() const;
  [[nodiscard]] base::Result<bool> distrust(const std::string& folder) const;

 private:
  explicit Store(Database database) : database_(std::move(database)) {}
  Database database_;
};

}  // namespace belljar::store
