// A launch whose engine fails at one request, for every request of it: nothing is left, and the deadline holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "docker/fault_proxy.h"
#include "docker/world.h"
#include "support/belljar.h"

namespace belljar::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uid_t kOwner = 23457;
constexpr size_t kAtOnce = 6;

// One launch by way of a proxy of its own.
class Launch {
 public:
  Launch(Fault fault, size_t at, std::chrono::milliseconds late = {}, const std::vector<std::string>& more = {})
      : fault_(fault), at_(at), proxy_(DockerWorld::get().socket(), fault, at, late) {
    if (::geteuid() == 0) (void)!::chown(work_.path().c_str(), kOwner, kOwner);
    std::vector<std::string> options{"--mode", "docker", "--docker-image", DockerWorld::kImage, "--env", "TOKEN=hush"};
    options.insert(options.end(), more.begin(), more.end());
    process_.emplace(with_engine(sealed_script(work_.path(), "echo ran", options)));
    proxy_.expect(process_->pid());
  }

  Output wait() {
    Output output = process_->wait();
    ended_ = FaultProxy::Clock::now();
    return output;
  }
  // From `begun` on (see FaultProxy).
  FaultProxy::Clock::duration gave_up_after(std::string_view begun) { return proxy_.gave_up_after(begun, ended_); }
  void recover() {
    const Output output = run(with_engine({.argv = {belljar_program(), "recover"}, .cwd = work_.path()}));
    EXPECT_EQ(output.code, 0) << name() << output.err;
  }
  [[nodiscard]] std::string name() const {
    return std::string(fault_name(fault_)) + " at request " + std::to_string(at_) + ": ";
  }
  // Files of the state folder that a session would have left.
  [[nodiscard]] std::vector<std::string> left_files() const {
    std::vector<std::string> out;
    std::error_code none;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(state_ / "state", none)) {
      const std::string path = entry.path();
      if (!entry.is_directory() && !path.ends_with(".json")) out.push_back(path);
    }
    return out;
  }
  FaultProxy& proxy() { return proxy_; }

 private:
  [[nodiscard]] Command with_engine(Command command) {
    command.env["DOCKER_HOST"] = "unix://" + proxy_.socket();
    command.env["XDG_STATE_HOME"] = state_ / "state";
    command.env["HOME"] = state_.path();
    return command;
  }
  Fault fault_;
  size_t at_;
  TempDir work_;
  TempDir state_;
  FaultProxy proxy_;
  std::optional<Process> process_;
  FaultProxy::Clock::time_point ended_;
};

// The requests of a launch that nothing goes wrong with, and which of them is the first that holds `what`.
std::vector<std::string> requests_of_a_launch() {
  Launch launch(Fault::kNone, 0);
  const Output output = launch.wait();
  EXPECT_EQ(output.out, "ran\n") << output.err;
  return launch.proxy().requests();
}
size_t index_of(const std::vector<std::string>& requests, std::string_view what) {
  const auto found = std::ranges::find_if(requests, [&](const auto& one) { return one.contains(what); });
  EXPECT_NE(found, requests.end()) << what;
  return static_cast<size_t>(found - requests.begin());
}

// What a launch that failed, was killed or went on all the same has said and done.
void expect_in_order(const Launch& launch, const Output& output, Fault fault) {
  constexpr int kKilled = 128 + 9;
  EXPECT_FALSE(output.timed_out) << launch.name();
  EXPECT_THAT(output.err, Not(HasSubstr("hush"))) << launch.name();
  if (fault == Fault::kKilled) {
    EXPECT_EQ(output.code, kKilled) << launch.name() << output.err;
    EXPECT_THAT(output.out, AnyOf(Eq("ran\n"), Eq(""))) << launch.name();
    return;
  }
  EXPECT_THAT(output.code, AnyOf(Eq(0), Eq(125))) << launch.name() << output.err;
  EXPECT_EQ(output.out, output.code == 0 ? "ran\n" : "") << launch.name() << output.err;
}

TEST(FaultTest, LeavesNothingWhateverRequestFails) {
  const std::vector<std::string> requests = requests_of_a_launch();
  EXPECT_THAT(requests, ::testing::Contains(HasSubstr("/containers/create")));
  EXPECT_THAT(requests, ::testing::Contains(HasSubstr("DELETE /")));
  std::vector<std::pair<Fault, size_t>> cases;
  for (size_t at = 0; at < requests.size(); ++at) {
    for (const Fault fault : {Fault::kRefused, Fault::kLost, Fault::kTruncated, Fault::kKilled}) {
      cases.emplace_back(fault, at);
    }
  }
  for (size_t first = 0; first < cases.size(); first += kAtOnce) {
    std::vector<std::unique_ptr<Launch>> batch;
    const size_t end = std::min(first + kAtOnce, cases.size());
    for (size_t i = first; i < end; ++i) batch.push_back(std::make_unique<Launch>(cases[i].first, cases[i].second));
    for (size_t i = first; i < end; ++i) expect_in_order(*batch[i - first], batch[i - first]->wait(), cases[i].first);
    for (auto& launch : batch) {
      launch->recover();
      EXPECT_THAT(launch->left_files(), IsEmpty()) << launch->name();
    }
    EXPECT_THAT(session_containers(), ::testing::IsEmpty()) << "after case " << first;
  }
}

// An engine that answers too late, at each request until the start: the launch gives up by its own deadline, and what
// the engine made all the same is removed.
TEST(FaultTest, HoldsItsDeadlineWhenAnAnswerIsLate) {
  constexpr auto kTimeout = std::chrono::seconds(3);
  const std::vector<std::string> requests = requests_of_a_launch();
  const size_t create = index_of(requests, "/containers/create");
  const size_t start = index_of(requests, "/start");
  ASSERT_LT(start, requests.size());
  std::vector<std::unique_ptr<Launch>> batch;
  for (size_t at = 0; at <= start; ++at) {
    batch.push_back(std::make_unique<Launch>(Fault::kLate, at, std::chrono::seconds(9),
                                             std::vector<std::string>{"--timeout", "3s"}));
  }
  for (size_t at = 0; at <= start; ++at) {
    Launch& launch = *batch[at];
    const Output output = launch.wait();
    EXPECT_EQ(output.code, 125) << launch.name() << output.err;
    EXPECT_EQ(output.out, "") << launch.name();
    EXPECT_FALSE(launch.proxy().late_answer_came()) << launch.name();
    // The time runs from before the first question, and anew from before the create.
    EXPECT_LT(launch.gave_up_after(at < create ? "/info" : "/containers/create"), kTimeout + kDeadlineMargin)
        << launch.name();
  }
  EXPECT_THAT(session_containers(), ::testing::IsEmpty());
}

// And at each request after it, when there is only to clean up: that has its own time, and is done.
TEST(FaultTest, CleansUpWhenAnAnswerIsLate) {
  const std::vector<std::string> requests = requests_of_a_launch();
  std::vector<std::unique_ptr<Launch>> batch;
  for (size_t at = index_of(requests, "/start") + 1; at < requests.size(); ++at) {
    batch.push_back(std::make_unique<Launch>(Fault::kLate, at, std::chrono::seconds(4)));
  }
  ASSERT_GE(batch.size(), 4U) << "a look, a list, a removal and a list";
  for (auto& launch : batch) {
    const Output output = launch->wait();
    EXPECT_EQ(output.code, 0) << launch->name() << output.err;
    EXPECT_EQ(output.out, "ran\n") << launch->name();
    EXPECT_TRUE(launch->proxy().late_answer_came()) << launch->name();
    EXPECT_THAT(launch->left_files(), IsEmpty()) << launch->name();
  }
  EXPECT_THAT(session_containers(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace belljar::testing
