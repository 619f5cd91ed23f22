// A phase of a task whose engine fails at one request, for every request of it: nothing of it is left, no credential
// either, and the task is whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "docker/fault_proxy.h"
#include "docker/test_task.h"
#include "docker/world.h"
#include "support/belljar.h"

namespace belljar::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kAtOnce = 4;

// A task whose engine is reached by a link, which leads to the engine or to a proxy in front of it.
class Scene {
 public:
  Scene() { write_file(root_ / "login.json", R"({"OPENAI_API_KEY":"hush-hush"})"); }

  void begin(Fault fault, size_t at, std::chrono::milliseconds late = {}, const std::string& deadline = "60s") {
    name_ = std::string(fault_name(fault)) + " at request " + std::to_string(at) + ": ";
    proxy_ = std::make_unique<FaultProxy>(DockerWorld::get().socket(), fault, at, late);
    lead_to(proxy_->socket());
    process_.emplace(task_.belljar({"task", "run", task_.id(), "--phase", "execute", "--agent", "codex", "--prompt",
                                    "echo ran", "--credential-file", root_ / "login.json", "--deadline", deadline}));
    proxy_->expect(process_->pid());
  }
  Output wait() {
    Output output = process_->wait();
    ended_ = FaultProxy::Clock::now();
    EXPECT_FALSE(output.timed_out) << name_;
    EXPECT_THAT(output.err, Not(HasSubstr("hush"))) << name_;
    return output;
  }
  void recover() {
    lead_to(DockerWorld::get().socket());
    const Output output = run(task_.belljar({"recover"}));
    EXPECT_EQ(output.code, 0) << name_ << output.err;
    std::error_code none;
    for (const char* folder : {"containers", "credentials"}) {
      for (const auto& entry :
           std::filesystem::directory_iterator(root_ / (std::string("state/belljar/") + folder), none)) {
        ADD_FAILURE() << name_ << entry.path();
      }
    }
  }
  // The task can be used all the same.
  void expect_whole() {
    const Output output =
        run(task_.belljar({"task", "run", task_.id(), "--phase", "review", "--", "cat", "/work/file"}));
    EXPECT_EQ(output.out, "content\n") << name_ << output.err;
  }
  // From `begun` on (see FaultProxy).
  FaultProxy::Clock::duration gave_up_after(std::string_view begun) { return proxy_->gave_up_after(begun, ended_); }
  [[nodiscard]] const std::string& name() const { return name_; }
  FaultProxy& proxy() { return *proxy_; }

 private:
  void lead_to(const std::string& socket) const {
    const std::string link = link_path();
    std::filesystem::create_symlink(socket, link + ".new");
    std::filesystem::rename(link + ".new", link);
  }
  [[nodiscard]] std::string link_path() const { return root_ / "engine.sock"; }
  [[nodiscard]] std::string link() const {
    lead_to(DockerWorld::get().socket());
    return link_path();
  }

  TempDir root_;
  TestTask task_{root_.path(), agents_image(), link()};
  std::string name_;
  std::unique_ptr<FaultProxy> proxy_;
  std::optional<Process> process_;
  FaultProxy::Clock::time_point ended_;
};

class TaskRunFaultTest : public ::testing::Test {
 protected:
  // The requests of a launch that nothing goes wrong with.
  std::vector<std::string> requests() {
    scenes_.at(0).begin(Fault::kNone, 0);
    const Output output = scenes_.at(0).wait();
    EXPECT_EQ(output.out, "ran\n") << output.err;
    return scenes_.at(0).proxy().requests();
  }
  std::array<Scene, kAtOnce> scenes_;
};

TEST_F(TaskRunFaultTest, LeavesNothingWhateverRequestFails) {
  constexpr int kKilled = 128 + 9;
  const size_t count = requests().size();
  ASSERT_GT(count, 10U);
  std::vector<std::pair<Fault, size_t>> cases;
  for (size_t at = 0; at < count; ++at) {
    for (const Fault fault : {Fault::kRefused, Fault::kLost, Fault::kTruncated, Fault::kKilled}) {
      cases.emplace_back(fault, at);
    }
  }
  for (size_t first = 0; first < cases.size(); first += kAtOnce) {
    const size_t batch = std::min(kAtOnce, cases.size() - first);
    for (size_t i = 0; i < batch; ++i) scenes_.at(i).begin(cases[first + i].first, cases[first + i].second);
    for (size_t i = 0; i < batch; ++i) {
      const Output output = scenes_.at(i).wait();
      if (cases[first + i].first == Fault::kKilled) {
        EXPECT_EQ(output.code, kKilled) << scenes_.at(i).name() << output.err;
        continue;
      }
      EXPECT_THAT(output.code, AnyOf(Eq(0), Eq(125))) << scenes_.at(i).name() << output.err;
      EXPECT_EQ(output.out, output.code == 0 ? "ran\n" : "") << scenes_.at(i).name() << output.err;
    }
    for (size_t i = 0; i < batch; ++i) scenes_.at(i).recover();
    EXPECT_THAT(session_containers(), ::testing::IsEmpty()) << "after case " << first;
  }
  for (Scene& scene : scenes_) scene.expect_whole();
}

// An engine that answers too late, at each request until the start: the launch gives up by its captured deadline, and
// by one as long before there is anything to capture.
TEST_F(TaskRunFaultTest, HoldsItsDeadlineWhenAnAnswerIsLate) {
  constexpr auto kTimeout = std::chrono::seconds(4);
  const auto all = requests();
  const auto index_of = [&](const char* what) {
    const auto found = std::ranges::find_if(all, [&](const auto& one) { return one.contains(what); });
    EXPECT_NE(found, all.end()) << what;
    return static_cast<size_t>(found - all.begin());
  };
  const size_t create = index_of("/containers/create");
  const size_t count = index_of("/start") + 1;
  for (size_t first = 0; first < count; first += kAtOnce) {
    const size_t batch = std::min(kAtOnce, count - first);
    for (size_t i = 0; i < batch; ++i) {
      scenes_.at(i).begin(Fault::kLate, first + i, std::chrono::seconds(9), "4s");
    }
    for (size_t i = 0; i < batch; ++i) {
      const Output output = scenes_.at(i).wait();
      EXPECT_EQ(output.code, 125) << scenes_.at(i).name() << output.err;
      EXPECT_EQ(output.out, "") << scenes_.at(i).name();
      EXPECT_LT(scenes_.at(i).gave_up_after(first + i < create ? "/info" : "/containers/create"),
                kTimeout + kDeadlineMargin)
          << scenes_.at(i).name();
    }
    for (size_t i = 0; i < batch; ++i) scenes_.at(i).recover();
  }
  EXPECT_THAT(session_containers(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace belljar::testing
