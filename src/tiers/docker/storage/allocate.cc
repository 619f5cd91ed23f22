#include "tiers/docker/storage/allocate.h"

#include <poll.h>

#include <chrono>
#include <optional>
#include <utility>

#include "base/text.h"
#include "tiers/docker/engine_json.h"
#include "tiers/docker/storage/helpers.h"
#include "tiers/docker/storage/volume_json.h"
#include "tiers/docker/validate_json.h"

namespace belljar::tiers::docker::storage {
namespace {

constexpr auto kSettleTime = std::chrono::seconds(2);
constexpr auto kCleanup = std::chrono::seconds(20);
constexpr int kPauseMilliseconds = 100;
constexpr std::string_view kAllocate = "allocate the task's storage";

std::string allocation_label(const TaskStorage& storage) {
  return std::string(kAllocationLabel) + "=" + storage.allocation;
}

base::Result<std::string> inspect_volume(const Engine& engine, const TaskStorage& storage, Part part,
                                         const base::Deadline& deadline) {
  const std::string& name = volume_of(storage, part).name;
  BELLJAR_ASSIGN(const Answered answer,
                 require(engine.ask("GET", "/volumes/" + percent_encode(name), deadline), "look at the volume", name));
  return check_volume(storage, part, answer.body);
}

base::Status make_volume(const Engine& engine, TaskStorage& storage, Part part, const base::Deadline& deadline) {
  Volume& volume = part == Part::kWork ? storage.work : storage.git;
  BELLJAR_TRY(require(engine.post("/volumes/create", create_request(storage, part), deadline), "create the volume",
                      volume.name));
  BELLJAR_ASSIGN(volume.mountpoint, inspect_volume(engine, storage, part, deadline));
  return {};
}

base::Status in_time(const TaskStorage& storage, const base::Deadline& deadline) {
  if (!deadline.passed()) return {};
  return base::refuse(kAllocate, storage.task, "the time was up, refusing");
}

base::Status make_all(const Engine& engine, const image::RegisteredImage& registered, TaskStorage& storage,
                      const Record& record, const base::Deadline& deadline) {
  BELLJAR_TRY(check_engine(engine.info()));
  if (registered.id() != storage.image_id) {
    return base::refuse(kAllocate, storage.task, "it was planned for another image, refusing");
  }
  BELLJAR_ASSIGN(const Image image, helper_image(engine, registered.id(), deadline));
  BELLJAR_TRY(record(storage));
  for (const Part part : {Part::kWork, Part::kGit}) {
    BELLJAR_TRY(in_time(storage, deadline));
    BELLJAR_TRY(make_volume(engine, storage, part, deadline));
  }
  if (storage.work.mountpoint == storage.git.mountpoint) {
    return base::refuse(kAllocate, storage.task, "both volumes are one, refusing");
  }
  BELLJAR_TRY(record(storage));
  BELLJAR_ASSIGN(storage.keeper_id, create_checked(engine, keeper_profile(storage, image, engine.info()), deadline));
  BELLJAR_TRY(record(storage));
  BELLJAR_TRY(require(engine.ask("POST", "/containers/" + storage.keeper_id + "/start", deadline), "start the keeper",
                      storage.keeper));
  return in_time(storage, deadline);
}

// One look for what is left, and an attempt to remove it.
class Remover {
 public:
  Remover(std::string socket, const TaskStorage& storage, bool seeder_only, const base::Deadline& deadline)
      : socket_(std::move(socket)), storage_(storage), seeder_only_(seeder_only), deadline_(deadline) {}

  // True when there was nothing. An error when the engine could not be asked.
  base::Result<bool> round();
  [[nodiscard]] const std::vector<std::string>& there() const { return there_; }

 private:
  [[nodiscard]] bool is_mine(const Owned& one) const {
    const auto label = one.labels.find(kAllocationLabel);
    const auto part = one.labels.find(kPartLabel);
    if (label == one.labels.end() || label->second != storage_.allocation || part == one.labels.end()) return false;
    return !seeder_only_ || part->second == "seeder";
  }
  void note(const char* kind, const Owned& one, Outcome outcome);

  std::string socket_;
  const TaskStorage& storage_;
  bool seeder_only_;
  const base::Deadline& deadline_;
  std::optional<Engine> engine_;
  std::vector<std::string> there_;  // with why
};

void Remover::note(const char* kind, const Owned& one, Outcome outcome) {
  const auto done = require(std::move(outcome), "remove", one.name);
  there_.push_back(std::string(kind) + " " + base::escape(one.id) + " (label " + allocation_label(storage_) +
                   "): " + (done ? "it is still there" : done.error().message()));
}

base::Result<bool> Remover::round() {
  there_.clear();
  if (!engine_) {
    BELLJAR_ASSIGN(engine_, Engine::open(socket_, deadline_));
  }
  const Engine& engine = *engine_;
  const std::string label = allocation_label(storage_);
  BELLJAR_ASSIGN(const std::vector<Owned> containers, engine.containers_with(label, deadline_));
  for (const Owned& one : containers) {
    if (is_mine(one)) note("container", one, engine.ask("DELETE", "/containers/" + one.id + "?force=1&v=1", deadline_));
  }
  if (!seeder_only_) {
    BELLJAR_ASSIGN(const std::vector<Owned> volumes, engine.volumes_with(label, deadline_));
    for (const Owned& one : volumes) {
      if (is_mine(one)) note("volume", one, engine.ask("DELETE", "/volumes/" + percent_encode(one.name), deadline_));
    }
  }
  return there_.empty();
}

Released remove_all(const std::string& socket, const TaskStorage& storage, bool seeder_only, bool settle,
                    const base::Deadline& deadline) {
  Remover remover(socket, storage, seeder_only, deadline);
  const base::Deadline settled = base::Deadline::after(settle ? kSettleTime : std::chrono::seconds(0));
  for (;;) {
    const auto nothing = remover.round();
    if (nothing && *nothing && settled.passed()) return {};
    if (deadline.passed()) {
      Released out{remover.there()};
      if (!nothing) {
        out.unreleased.push_back("what bears the label " + allocation_label(storage) + ": " +
                                 nothing.error().message());
      }
      // It was seen to be gone, but not for the whole of the settle window.
      if (out.unreleased.empty()) {
        out.unreleased.push_back("what bears the label " + allocation_label(storage) + ": it may still come");
      }
      return out;
    }
    (void)::poll(nullptr, 0, kPauseMilliseconds);
  }
}

}  // namespace

base::Result<TaskStorage> allocate(const Engine& engine, const image::RegisteredImage& image, TaskStorage planned,
                                   const Record& record, const base::Deadline& deadline) {
  auto made = make_all(engine, image, planned, record, deadline);
  if (made) return planned;
  const Released released = release(engine.socket(), planned, true, base::Deadline::after(kCleanup));
  base::Error error = std::move(made).error();
  for (const std::string& one : released.unreleased) error.reason += "; not removed: " + one;
  return std::unexpected(std::move(error));
}

Released release(const std::string& engine_socket, const TaskStorage& storage, bool settle,
                 const base::Deadline& deadline) {
  return remove_all(engine_socket, storage, false, settle, deadline);
}

Released release_seeder(const std::string& engine_socket, const TaskStorage& storage, bool settle,
                        const base::Deadline& deadline) {
  return remove_all(engine_socket, storage, true, settle, deadline);
}

base::Status check_unused(const Engine& engine, const TaskStorage& storage, const base::Deadline& deadline) {
  for (const Part part : {Part::kWork, Part::kGit}) {
    const std::string& name = volume_of(storage, part).name;
    const std::string target = "/containers/json?all=1&filters=" + percent_encode(volume_filter(name));
    BELLJAR_ASSIGN(const Answered answer, require(engine.ask("GET", target, deadline), "list containers", name));
    const auto users = read_containers(answer.body);
    if (!users) return base::refuse("list containers", name, "the engine's answer is not of the API's form, refusing");
    for (const Owned& one : *users) {
      if (one.id == storage.keeper_id) continue;
      return base::refuse("use the task", storage.task,
                          "the container '" + one.name + "' still has its " + part_name(part) + " volume, refusing",
                          "wait for it to end, or end it");
    }
  }
  return {};
}

base::Result<TaskStorage> look_up(const Engine& engine, TaskStorage recorded, const base::Deadline& deadline) {
  BELLJAR_ASSIGN(recorded.work.mountpoint, inspect_volume(engine, recorded, Part::kWork, deadline));
  BELLJAR_ASSIGN(recorded.git.mountpoint, inspect_volume(engine, recorded, Part::kGit, deadline));
  BELLJAR_ASSIGN(const Image image, helper_image(engine, recorded.image_id, deadline));
  BELLJAR_ASSIGN(const Answered answer,
                 require(engine.ask("GET", "/containers/" + recorded.keeper_id + "/json", deadline),
                         "look at the keeper", recorded.keeper));
  BELLJAR_ASSIGN(const std::vector<Difference> found,
                 differences(keeper_profile(recorded, image, engine.info()), answer.body));
  for (const Difference& one : found) {
    // It runs by now, and so its networks have been entered.
    if (one.field == Field::kRunning) continue;
    return base::refuse(
        "check the keeper", recorded.keeper,
        docker::field_name(one.field) + ": expected " + one.expected + ", found " + one.found + ", refusing");
  }
  if (!is_running(answer.body)) {
    return base::refuse("check the keeper", recorded.keeper, "it does not run: the task's files are gone, refusing",
                        "the engine or the machine was restarted; remove the task and make it again");
  }
  return recorded;
}

}  // namespace belljar::tiers::docker::storage
