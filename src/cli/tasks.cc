#include "cli/tasks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/path.h"
#include "base/private_folder.h"
#include "base/random.h"
#include "cli/image_builds.h"
#include "policy/values.h"
#include "tiers/docker/image/registered.h"
#include "tiers/docker/storage/allocate.h"
#include "tiers/docker/storage/read_back.h"
#include "tiers/docker/storage/seed.h"

namespace belljar::cli {
namespace {

namespace storage = tiers::docker::storage;
using tiers::docker::Engine;

constexpr auto kCleanup = std::chrono::seconds(30);
constexpr std::string_view kFind = "find the task";
constexpr uint64_t kMegabyte = uint64_t{1} << 20U;
constexpr uint64_t kWorkRoom = 256 * kMegabyte;  // for what an agent makes, beside as much again as there is
constexpr uint64_t kWorkFilesRoom = 50'000;
constexpr uint64_t kGitRoom = kMegabyte;
constexpr uint64_t kGitFilesRoom = 16;

// Half of the machine's memory (sysconf(3)).
uint64_t default_pool() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) / 2 * static_cast<uint64_t>(page) : 0;
}

base::Status fits(std::string_view option, const std::string& project, uint64_t wanted, uint64_t needed, bool bytes) {
  if (wanted >= needed) return {};
  const auto text = [&](uint64_t value) { return bytes ? policy::size_text(value) : std::to_string(value); };
  return base::refuse(
      "create the task", project,
      "it takes " + text(needed) + ", and " + std::string(option) + " allows " + text(wanted) + ", refusing",
      "make it larger");
}

base::Result<storage::Ceilings> ceilings_of(const TaskWish& wish, const workspace::Clone& clone,
                                            const base::Deadline& deadline) {
  BELLJAR_ASSIGN(const workspace::TreeSize work, clone.measure(workspace::TreeKind::kWork, deadline));
  BELLJAR_ASSIGN(const workspace::TreeSize git, clone.measure(workspace::TreeKind::kMetadata, deadline));
  storage::Ceilings out;
  out.work_bytes = wish.work_bytes != 0 ? wish.work_bytes : 2 * work.bytes + kWorkRoom;
  out.work_files = wish.work_files != 0 ? wish.work_files : 2 * work.files + kWorkFilesRoom;
  out.git_bytes = wish.git_bytes != 0 ? wish.git_bytes : git.bytes + kGitRoom;
  out.git_files = wish.git_files != 0 ? wish.git_files : git.files + kGitFilesRoom;
  // One inode is the volume's own folder.
  BELLJAR_TRY(fits("--work-size", wish.project, out.work_bytes, work.bytes, true));
  BELLJAR_TRY(fits("--work-files", wish.project, out.work_files, work.files + 1, false));
  BELLJAR_TRY(fits("--git-size", wish.project, out.git_bytes, git.bytes, true));
  BELLJAR_TRY(fits("--git-files", wish.project, out.git_files, git.files + 1, false));
  return out;
}

// What a creation goes by, and what it has come to.
struct Creation {
  const std::string& state;
  const store::Store& store;
  const TaskWish& wish;
  std::string folder;  // the task's
  store::Task task;
  bool admitted = false;
};

base::Status carry_out(Creation& creation, const base::Deadline& deadline) {
  store::Task& task = creation.task;
  BELLJAR_ASSIGN(task.engine, tiers::docker::engine_socket(creation.wish.engine));
  BELLJAR_ASSIGN(const Engine engine, Engine::open(task.engine, deadline));
  BELLJAR_ASSIGN(const auto registry, registry_of(creation.state));
  BELLJAR_ASSIGN(const auto image,
                 tiers::docker::image::require_registered(registry, engine, creation.wish.image, deadline));
  BELLJAR_ASSIGN(const workspace::Clone clone,
                 workspace::Clone::make(task.project, creation.folder + "/clone", deadline));
  task.clone = workspace::encode(clone.record());
  BELLJAR_ASSIGN(const storage::Ceilings ceilings, ceilings_of(creation.wish, clone, deadline));
  storage::TaskStorage planned =
      storage::plan_storage(task.id, base::random_hex(16), clone.record().token, image.id(), ceilings);
  task.storage = storage::encode(planned);
  task.bytes = storage::bytes_of(planned);
  BELLJAR_TRY(creation.store.admit_task(task, default_pool()));
  creation.admitted = true;
  const storage::Record record = [&](const storage::TaskStorage& now) {
    task.storage = storage::encode(now);
    return creation.store.update_task(task);
  };
  BELLJAR_ASSIGN(const storage::TaskStorage made,
                 storage::allocate(engine, image, std::move(planned), record, deadline));
  BELLJAR_TRY(storage::seed(engine, image, made, clone, creation.folder + "/streams", deadline));
  BELLJAR_TRY(clone.discard_checkout());
  if (deadline.passed()) return base::refuse("create the task", task.id, "the time was up, refusing");
  task.state = store::TaskState::kReady;
  return creation.store.update_task(task);
}

base::Status remove_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return base::system_error("remove the task's folder", path, error.value());
  return {};
}

base::Result<base::Fd> open_locked(const std::string& path, const std::string& id) {
  base::Fd out(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!out) return base::system_error("open the task", id, errno);
  if (::flock(out.get(), LOCK_EX | LOCK_NB) == 0) return out;
  if (errno != EWOULDBLOCK) return base::system_error("lock the task", id, errno);
  base::Error error = base::refuse("lock the task", id, "another belljar is at it, refusing", "wait for it").error();
  error.code = EWOULDBLOCK;
  return std::unexpected(std::move(error));
}

}  // namespace

base::Result<Tasks> Tasks::open() {
  BELLJAR_ASSIGN(std::string state, own_state_folder());
  BELLJAR_ASSIGN(store::Store store, store::Store::open(state));
  std::string folder = state + "/tasks";
  BELLJAR_ASSIGN(base::Fd fd, base::open_private_folder(folder, "open the tasks"));
  return Tasks(std::move(state), std::move(folder), std::move(fd), std::move(store));
}

// Under a lock of all tasks, so that recover() never sees a folder between its making and its lock.
base::Result<base::Fd> Tasks::make_folder(const std::string& id) const {
  if (::flock(fd_.get(), LOCK_EX) != 0) return base::system_error("lock the tasks", folder_, errno);
  const std::string path = folder_ + "/" + id;
  auto out = ::mkdir(path.c_str(), 0700) == 0
                 ? open_locked(path, id)
                 : base::Result<base::Fd>(base::system_error("make the task", path, errno));
  ::flock(fd_.get(), LOCK_UN);
  return out;
}

base::Result<store::Task> Tasks::create(const TaskWish& wish, const base::Deadline& deadline) const {
  Creation creation{.state = state_, .store = store_, .wish = wish, .folder = {}, .task = {}};
  creation.task.id = base::random_hex(8);
  BELLJAR_ASSIGN(creation.task.project, base::real_path(wish.project));
  creation.task.made = ::time(nullptr);
  creation.folder = folder_ + "/" + creation.task.id;
  BELLJAR_ASSIGN(const base::Fd lock, make_folder(creation.task.id));
  auto status = carry_out(creation, deadline);
  if (status) return creation.task;
  base::Error error = std::move(status).error();
  const auto removed = creation.admitted ? take_down(creation.task, true, base::Deadline::after(kCleanup))
                                         : remove_folder(creation.folder);
  if (!removed) error.reason += "; and then: " + removed.error().message();
  return std::unexpected(std::move(error));
}

base::Status Tasks::take_down(store::Task task, bool settle, const base::Deadline& deadline) const {
  BELLJAR_ASSIGN(const storage::TaskStorage made, storage::decode_storage(task.storage));
  task.state = store::TaskState::kRemoving;
  BELLJAR_TRY(store_.update_task(task));
  const storage::Released released = storage::release(task.engine, made, settle, deadline);
  if (!released.unreleased.empty()) {
    std::string reason = "it still has: ";
    for (const std::string& one : released.unreleased) reason += one + "; ";
    return base::refuse("remove the task", task.id, reason + "its record is kept",
                        "when the engine answers again: belljar recover");
  }
  BELLJAR_TRY(remove_folder(folder_ + "/" + task.id));
  return store_.remove_task(task.id);
}

base::Status Tasks::remove(const std::string& id, const base::Deadline& deadline) const {
  BELLJAR_ASSIGN(const LockedTask found, find(id));
  BELLJAR_ASSIGN(const storage::TaskStorage made, storage::decode_storage(found.task.storage));
  BELLJAR_ASSIGN(const Engine engine, Engine::open(found.task.engine, deadline));
  BELLJAR_TRY(storage::check_unused(engine, made, deadline));
  return take_down(found.task, false, deadline);
}

base::Status Tasks::recover_one(const store::Task& task, tiers::docker::Reach& reach,
                                std::vector<RecoveredTask>& done) const {
  const std::string path = folder_ + "/" + task.id;
  auto lock = open_locked(path, task.id);
  // Its folder goes before its record.
  if (!lock && lock.error().code != ENOENT) {
    return lock.error().code == EWOULDBLOCK ? base::Status{} : std::unexpected(std::move(lock).error());
  }
  // As it is now that nobody else is at it.
  BELLJAR_ASSIGN(const auto now, store_.task(task.id));
  if (!now) return {};
  if (auto answers = reach.answers(now->engine); !answers) {
    return base::refuse("recover the task", task.id, answers.error().message(),
                        "when the engine answers again: belljar recover; to give it up: belljar task rm --forget");
  }
  const base::Deadline deadline = base::Deadline::after(kCleanup);
  if (now->state != store::TaskState::kReady) {
    BELLJAR_TRY(take_down(*now, false, deadline));
    done.push_back({task.id, "what there was of its storage is removed"});
    return {};
  }
  BELLJAR_ASSIGN(const storage::TaskStorage made, storage::decode_storage(now->storage));
  const storage::Released released = storage::release_seeder(now->engine, made, false, deadline);
  if (released.unreleased.empty()) return {};
  return base::refuse("recover the task", task.id, "its seeder may be there: " + released.unreleased.front());
}

// Folders without a record: their makers died before they were admitted.
base::Status Tasks::recover_strays(const std::vector<store::Task>& known, std::vector<RecoveredTask>& done) const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string id = entry.path().filename();
    if (std::ranges::find(known, id, &store::Task::id) != known.end()) continue;
    const auto lock = open_locked(entry.path(), id);
    if (!lock) continue;
    BELLJAR_ASSIGN(const auto now, store_.task(id));
    if (now) continue;
    BELLJAR_TRY(remove_folder(entry.path()));
    done.push_back({id, "its clone is removed"});
  }
  if (error) return base::system_error("list the tasks", folder_, error.value());
  return {};
}

base::Result<std::vector<RecoveredTask>> Tasks::recover(tiers::docker::Reach& reach,
                                                        std::vector<base::Error>& errors) const {
  std::vector<RecoveredTask> done;
  if (::flock(fd_.get(), LOCK_EX) != 0) return base::system_error("lock the tasks", folder_, errno);
  BELLJAR_ASSIGN(const std::vector<store::Task> known, store_.tasks());
  for (const store::Task& task : known) {
    if (auto status = recover_one(task, reach, done); !status) errors.push_back(std::move(status).error());
  }
  if (auto status = recover_strays(known, done); !status) errors.push_back(std::move(status).error());
  ::flock(fd_.get(), LOCK_UN);
  return done;
}

base::Result<LockedTask> Tasks::find_any(const std::string& id) const {
  constexpr size_t kLeastDigits = 4;
  BELLJAR_ASSIGN(const std::vector<store::Task> known, store_.tasks());
  std::vector<store::Task> found;
  for (const store::Task& one : known) {
    if (id.size() >= kLeastDigits && one.id.starts_with(id)) found.push_back(one);
  }
  if (found.empty()) return base::refuse(kFind, id, "there is none, refusing", "see 'belljar task ls'");
  if (found.size() > 1) return base::refuse(kFind, id, "more than one begins so, refusing", "give more digits");
  LockedTask out{.task = {}, .folder = folder_ + "/" + found.front().id, .lock = {}};
  BELLJAR_ASSIGN(out.lock, open_locked(out.folder, found.front().id));
  BELLJAR_ASSIGN(auto now, store_.task(found.front().id));
  if (!now) return base::refuse(kFind, id, "it is gone meanwhile, refusing");
  out.task = std::move(*now);
  return out;
}

base::Result<LockedTask> Tasks::find(const std::string& id) const {
  BELLJAR_ASSIGN(LockedTask out, find_any(id));
  if (out.task.state == store::TaskState::kReady) return out;
  return base::refuse(kFind, id, "it is not whole, refusing", "remove what there is of it: belljar recover");
}

base::Result<std::string> Tasks::forget(const std::string& id, const base::Deadline& deadline) const {
  BELLJAR_ASSIGN(const LockedTask found, find_any(id));
  BELLJAR_ASSIGN(const storage::TaskStorage made, storage::decode_storage(found.task.storage));
  if (!tiers::docker::is_silent(found.task.engine, deadline)) {
    return base::refuse("forget the task", found.task.id, "its engine answers, refusing",
                        "remove it as it should be: belljar task rm " + found.task.id);
  }
  BELLJAR_TRY(remove_folder(found.folder));
  BELLJAR_TRY(store_.remove_task(found.task.id));
  return "the engine at '" + found.task.engine + "' may still have the container '" + made.keeper +
         "' and the volumes '" + made.work.name + "' and '" + made.git.name + "' (label " + storage::kAllocationLabel +
         "=" + made.allocation + ")";
}

base::Result<storage::TaskStorage> Tasks::storage_of(const store::Task& task, const Engine& engine,
                                                     const base::Deadline& deadline) {
  BELLJAR_ASSIGN(storage::TaskStorage recorded, storage::decode_storage(task.storage));
  BELLJAR_ASSIGN(const workspace::CloneRecord clone, workspace::decode_clone(task.clone));
  if (recorded.task != task.id || recorded.clone != clone.token) {
    return base::refuse("find the task", task.id, "its records are of different tasks, refusing");
  }
  return storage::look_up(engine, std::move(recorded), deadline);
}

base::Result<TaskWork> Tasks::read(const LockedTask& task, const base::Deadline& deadline) {
  BELLJAR_ASSIGN(const Engine engine, Engine::open(task.task.engine, deadline));
  BELLJAR_ASSIGN(const storage::TaskStorage made, storage_of(task.task, engine, deadline));
  BELLJAR_ASSIGN(workspace::CloneRecord record, workspace::decode_clone(task.task.clone));
  BELLJAR_ASSIGN(workspace::Clone clone, workspace::Clone::reopen(std::move(record)));
  BELLJAR_TRY(storage::check_unused(engine, made, deadline));
  workspace::MetadataCheck metadata(clone);
  BELLJAR_TRY(storage::read_volume(engine, made, storage::Part::kGit, metadata, deadline));
  BELLJAR_TRY(metadata.finish(deadline));
  BELLJAR_ASSIGN(workspace::BaseTree tree, clone.tree(deadline));
  BELLJAR_ASSIGN(const auto maker, workspace::ManifestMaker::make(clone.record().commit, std::move(tree), task.folder));
  BELLJAR_TRY(storage::read_volume(engine, made, storage::Part::kWork, *maker, deadline));
  BELLJAR_TRY(storage::check_unused(engine, made, deadline));
  BELLJAR_ASSIGN(workspace::Manifest manifest, maker->finish());
  if (deadline.passed()) return base::refuse("read the task", task.task.id, "the time was up, refusing");
  return TaskWork{std::move(clone), std::move(manifest)};
}

base::Result<uint64_t> Tasks::pool() const {
  BELLJAR_ASSIGN(const std::optional<uint64_t> set, store_.pool());
  return set.value_or(default_pool());
}

}  // namespace belljar::cli
