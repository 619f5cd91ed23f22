// A launch whose engine fails at one request, for every request of it: nothing is left, and the deadline holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
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
  }

  Output wait() { return process_->wait(); }
  void recover() {
    const Output output = run(with_engine({.argv = {belljar_program(), "recover"}, .cwd = work_.path()}));
    EXPECT_EQ(output.code, 0) << name() << output.err;
  }
  [[nodiscard]] std::string name() const {
    static constexpr std::array kNames = {"none", "refused", "lost", "truncated", "late"};
    return std::string(kNames.at(static_cast<size_t>(fault_))) + " at request " + std::to_string(at_) + ": ";
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
};

TEST(FaultTest, LeavesNothingWhateverRequestFails) {
  size_t count = 0;
  {
    Launch launch(Fault::kNone, 0);
    const Output output = launch.wait();
    ASSERT_EQ(output.out, "ran\n") << output.err;
    const auto requests = launch.proxy().requests();
    count = requests.size();
    EXPECT_THAT(requests, ::testing::Contains(HasSubstr("/containers/create")));
    EXPECT_THAT(requests, ::testing::Contains(HasSubstr("DELETE /")));
  }
  ASSERT_GT(count, 8U);
  std::vector<std::pair<Fault, size_t>> cases;
  for (size_t at = 0; at < count; ++at) {
    for (const Fault fault : {Fault::kRefused, Fault::kLost, Fault::kTruncated}) cases.emplace_back(fault, at);
  }
  for (size_t first = 0; first < cases.size(); first += kAtOnce) {
    std::vector<std::unique_ptr<Launch>> batch;
    for (size_t i = first; i < std::min(first + kAtOnce, cases.size()); ++i) {
      batch.push_back(std::make_unique<Launch>(cases[i].first, cases[i].second));
    }
    for (auto& launch : batch) {
      const Output output = launch->wait();
      EXPECT_FALSE(output.timed_out) << launch->name();
      EXPECT_THAT(output.code, AnyOf(Eq(0), Eq(125))) << launch->name() << output.err;
      EXPECT_EQ(output.out, output.code == 0 ? "ran\n" : "") << launch->name() << output.err;
      EXPECT_THAT(output.err, Not(HasSubstr("hush"))) << launch->name();
    }
    for (auto& launch : batch) {
      launch->recover();
      EXPECT_THAT(launch->left_files(), IsEmpty()) << launch->name();
    }
    EXPECT_THAT(session_containers(), ::testing::IsEmpty()) << "after case " << first;
  }
}

// An engine that answers too late, at the create, the look and the start: the launch has ended long before, by its own
// deadline, and what the engine made all the same is removed.
TEST(FaultTest, HoldsItsDeadlineWhenAnAnswerIsLate) {
  size_t create = 0;
  {
    Launch launch(Fault::kNone, 0);
    ASSERT_EQ(launch.wait().out, "ran\n");
    const auto requests = launch.proxy().requests();
    while (create < requests.size() && !requests[create].contains("/containers/create")) ++create;
    ASSERT_LT(create, requests.size());
  }
  std::vector<std::unique_ptr<Launch>> batch;
  for (size_t at = create; at < create + 3; ++at) {
    batch.push_back(std::make_unique<Launch>(Fault::kLate, at, std::chrono::seconds(9),
                                             std::vector<std::string>{"--timeout", "3s"}));
  }
  for (auto& launch : batch) {
    const Output output = launch->wait();
    EXPECT_EQ(output.code, 125) << launch->name() << output.err;
    EXPECT_EQ(output.out, "") << launch->name();
    EXPECT_FALSE(launch->proxy().late_answer_came()) << launch->name();
  }
  EXPECT_THAT(session_containers(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace belljar::testing
