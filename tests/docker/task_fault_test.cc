// The making of a task whose engine fails at one request, for every request of it: nothing is left after recover, and
// the deadline holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "docker/fault_proxy.h"
#include "docker/world.h"
#include "store/store.h"
#include "support/belljar.h"
#include "support/git_repository.h"
#include "tiers/docker/storage/task_storage.h"

namespace belljar::testing {
namespace {

namespace storage = tiers::docker::storage;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Eq;
using ::testing::HasSubstr;

constexpr size_t kAtOnce = 6;

base::Deadline soon() {
  return base::Deadline::after(std::chrono::seconds(60));
}

const TempDir& project() {
  static const auto* const root = [] {
    auto* const made = new TempDir;
    repository(made->path() + "/project");
    return made;
  }();
  return *root;
}

// One task by way of a proxy of its own, with a state folder of its own.
class Making {
 public:
  Making(Fault fault, size_t at, std::chrono::milliseconds late = {}, const std::vector<std::string>& more = {})
      : fault_(fault), at_(at), proxy_(DockerWorld::get().socket(), fault, at, late) {
    ::chmod(state_.path().c_str(), 0700);
    const auto store = store::Store::open(state_ / "state/belljar");
    EXPECT_TRUE(store.has_value());
    EXPECT_TRUE(store
                    ->register_image({.id = DockerWorld::get().image_id(),
                                      .tag = DockerWorld::kImage,
                                      .engine = proxy_.socket(),
                                      .pins = "",
                                      .made = 1})
                    .has_value());
    std::vector<std::string> words{"task", "create", "--image", DockerWorld::kImage, "--work-size", "1MiB"};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(project() / "project");
    process_.emplace(command(words));
  }
  Output wait() {
    Output output = process_->wait();
    ended_ = FaultProxy::Clock::now();
    return output;
  }
  // From its first request on.
  FaultProxy::Clock::duration gave_up_after() { return proxy_.gave_up_after("/info", ended_); }
  [[nodiscard]] Output belljar(const std::vector<std::string>& words) const { return run(command(words)); }
  [[nodiscard]] std::vector<store::Task> tasks() const {
    const auto store = store::Store::open(state_ / "state/belljar");
    return store->tasks().value_or(std::vector<store::Task>{});
  }
  [[nodiscard]] std::string name() const {
    return std::string(fault_name(fault_)) + " at request " + std::to_string(at_) + ": ";
  }
  [[nodiscard]] bool folder_is_empty() const { return std::filesystem::is_empty(state_ / "state/belljar/tasks"); }
  FaultProxy& proxy() { return proxy_; }

 private:
  [[nodiscard]] Command command(std::vector<std::string> words) const {
    words.insert(words.begin(), belljar_program());
    return {.argv = std::move(words),
            .env = {{"DOCKER_HOST", "unix://" + proxy_.socket()},
                    {"XDG_STATE_HOME", state_ / "state"},
                    {"HOME", state_.path()}},
            .cwd = state_.path()};
  }
  Fault fault_;
  size_t at_;
  TempDir state_;
  FaultProxy proxy_;
  std::optional<Process> process_;
  FaultProxy::Clock::time_point ended_;
};

// Ends what was made, or sees that nothing was, and that nothing is left.
void settle(Making& making, const Output& output) {
  EXPECT_FALSE(output.timed_out) << making.name();
  EXPECT_THAT(output.code, AnyOf(Eq(0), Eq(125))) << making.name() << output.err;
  const Output recovered = making.belljar({"recover"});
  EXPECT_EQ(recovered.code, 0) << making.name() << recovered.err;
  EXPECT_EQ(making.tasks().size(), output.code == 0 ? 1U : 0U) << making.name() << output.err;
  for (const store::Task& task : making.tasks()) {
    EXPECT_EQ(task.state, store::TaskState::kReady);
    const Output inspected = making.belljar({"task", "inspect", task.id});
    EXPECT_EQ(inspected.code, 0) << making.name() << inspected.err;
    EXPECT_EQ(making.belljar({"task", "rm", task.id}).code, 0) << making.name();
  }
  EXPECT_TRUE(making.folder_is_empty()) << making.name();
}

bool nothing_is_left() {
  const auto containers = DockerWorld::get().engine().containers_with(storage::kTaskLabel, soon());
  const auto volumes = DockerWorld::get().engine().volumes_with(storage::kTaskLabel, soon());
  return containers && containers->empty() && volumes && volumes->empty();
}

TEST(TaskFaultTest, LeavesNothingWhateverRequestFails) {
  size_t count = 0;
  {
    Making making(Fault::kNone, 0);
    const Output output = making.wait();
    ASSERT_EQ(output.code, 0) << output.err;
    const auto requests = making.proxy().requests();
    count = requests.size();
    for (const char* part : {"/volumes/create", "/containers/create", "/start", "/wait", "DELETE /"}) {
      EXPECT_THAT(requests, Contains(HasSubstr(part)));
    }
    settle(making, output);
  }
  ASSERT_GT(count, 15U);
  std::vector<std::pair<Fault, size_t>> cases;
  for (size_t at = 0; at < count; ++at) {
    for (const Fault fault : {Fault::kRefused, Fault::kLost, Fault::kTruncated}) cases.emplace_back(fault, at);
  }
  for (size_t first = 0; first < cases.size(); first += kAtOnce) {
    std::vector<std::unique_ptr<Making>> batch;
    for (size_t i = first; i < std::min(first + kAtOnce, cases.size()); ++i) {
      batch.push_back(std::make_unique<Making>(cases[i].first, cases[i].second));
    }
    for (auto& making : batch) settle(*making, making->wait());
    EXPECT_TRUE(nothing_is_left()) << "after case " << first;
  }
}

// An answer that comes too late, at each request that makes or starts something: the command has ended long before, by
// its own deadline and its own time for cleaning up.
TEST(TaskFaultTest, HoldsItsDeadlineWhenAnAnswerIsLate) {
  std::vector<size_t> places;
  {
    Making making(Fault::kNone, 0);
    const Output output = making.wait();
    ASSERT_EQ(output.code, 0) << output.err;
    const auto requests = making.proxy().requests();
    for (size_t at = 0; at < requests.size(); ++at) {
      if (requests[at].starts_with("POST ")) places.push_back(at);
    }
    settle(making, output);
  }
  ASSERT_GE(places.size(), 7U) << "two volumes, two containers, two starts and a wait";
  std::vector<std::unique_ptr<Making>> batch;
  for (const size_t at : places) {
    batch.push_back(std::make_unique<Making>(Fault::kLate, at, std::chrono::seconds(20),
                                             std::vector<std::string>{"--timeout", "6s"}));
  }
  for (auto& making : batch) {
    const Output output = making->wait();
    EXPECT_EQ(output.code, 125) << making->name() << output.err;
    EXPECT_EQ(output.out, "") << making->name();
    EXPECT_FALSE(making->proxy().late_answer_came()) << making->name();
    EXPECT_LT(making->gave_up_after(), std::chrono::seconds(6) + kDeadlineMargin) << making->name();
    settle(*making, output);
  }
  EXPECT_TRUE(nothing_is_left());
}

}  // namespace
}  // namespace belljar::testing
