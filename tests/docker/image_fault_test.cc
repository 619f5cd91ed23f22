// A build whose engine fails at one request, for every request of it: nothing is left that is not registered, nothing
// is registered that failed, and the deadline holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "docker/fault_proxy.h"
#include "docker/image_world.h"
#include "docker/world.h"

namespace belljar::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr size_t kAtOnce = 12;

base::Deadline soon() {
  return base::Deadline::after(std::chrono::seconds(60));
}

// One build by way of a proxy of its own.
class Build {
 public:
  Build(Fault fault, size_t at, std::chrono::milliseconds late = {}, const std::vector<std::string>& more = {})
      : fault_(fault), at_(at), proxy_(DockerWorld::get().socket(), fault, at, late) {
    process_.emplace(world_.build(proxy_.socket(), more));
  }

  Output wait() { return process_->wait(std::chrono::seconds(150)); }
  Output belljar(const std::vector<std::string>& words) { return run(world_.command(proxy_.socket(), words)); }
  [[nodiscard]] std::string name() const {
    return std::string(fault_name(fault_)) + " at request " + std::to_string(at_) + ": ";
  }
  FaultProxy& proxy() { return proxy_; }
  [[nodiscard]] const ImageWorld& world() const { return world_; }

  // What came of it is in order; what was built is removed.
  void expect_in_order(const Output& output) {
    EXPECT_FALSE(output.timed_out) << name();
    EXPECT_THAT(output.code, AnyOf(Eq(0), Eq(125))) << name() << output.err;
    const std::string list = belljar({"image", "ls"}).out;
    if (output.code == 0) {
      EXPECT_THAT(output.out, StartsWith(list.substr(0, 19))) << name();
      EXPECT_EQ(belljar({"image", "rm", output.out.substr(0, output.out.size() - 1)}).code, 0) << name();
    } else {
      EXPECT_EQ(output.out, "") << name();
      EXPECT_EQ(list, "") << name() << output.err;
    }
    // The fault may have waited for this very request.
    (void)belljar({"recover"});
    const Output recovered = belljar({"recover"});
    EXPECT_EQ(recovered.code, 0) << name() << recovered.err;
    EXPECT_THAT(world_.records(), IsEmpty()) << name();
  }

 private:
  Fault fault_;
  size_t at_;
  ImageWorld world_;
  FaultProxy proxy_;
  std::optional<Process> process_;
};

void expect_nothing_is_left(const std::string& when) {
  const auto& engine = DockerWorld::get().engine();
  const auto containers = engine.containers_with("belljar.build", soon());
  ASSERT_TRUE(containers.has_value());
  EXPECT_THAT(*containers, IsEmpty()) << when;
  for (const char* label : {"belljar.build", "belljar.import"}) {
    const auto images = engine.images_with(label, soon());
    ASSERT_TRUE(images.has_value());
    EXPECT_THAT(*images, IsEmpty()) << when;
  }
}

std::vector<std::string> requests_of_a_build() {
  Build build(Fault::kNone, 0);
  const Output output = build.wait();
  EXPECT_EQ(output.code, 0) << output.err;
  std::vector<std::string> out = build.proxy().requests();
  build.expect_in_order(output);
  return out;
}

TEST(ImageFaultTest, LeavesNothingWhateverRequestFails) {
  const std::vector<std::string> requests = requests_of_a_build();
  ASSERT_GT(requests.size(), 18U);
  EXPECT_THAT(requests, Contains(HasSubstr("/commit?")));
  EXPECT_THAT(requests, Contains(HasSubstr("DELETE /")));
  std::vector<std::pair<Fault, size_t>> cases;
  for (size_t at = 0; at < requests.size(); ++at) {
    for (const Fault fault : {Fault::kRefused, Fault::kLost, Fault::kTruncated}) cases.emplace_back(fault, at);
  }
  for (size_t first = 0; first < cases.size(); first += kAtOnce) {
    std::vector<std::unique_ptr<Build>> batch;
    for (size_t i = first; i < std::min(first + kAtOnce, cases.size()); ++i) {
      batch.push_back(std::make_unique<Build>(cases[i].first, cases[i].second));
    }
    for (auto& build : batch) build->expect_in_order(build->wait());
    expect_nothing_is_left("after case " + std::to_string(first));
  }
}

// An engine that does what it is asked and says so too late, at each of the last steps: that is a failure too.
TEST(ImageFaultTest, WhatSucceedsTooLateHasFailed) {
  const std::vector<std::string> requests = requests_of_a_build();
  std::vector<std::unique_ptr<Build>> batch;
  for (const char* what : {"/commit?", "/wait", "/tag?"}) {
    const auto found =
        std::find_if(requests.rbegin(), requests.rend(), [&](const auto& one) { return one.contains(what); });
    ASSERT_NE(found, requests.rend()) << what;
    batch.push_back(std::make_unique<Build>(Fault::kLate, static_cast<size_t>(requests.rend() - found) - 1,
                                            std::chrono::seconds(30), std::vector<std::string>{"--timeout", "15s"}));
  }
  for (auto& build : batch) {
    const Output output = build->wait();
    EXPECT_EQ(output.code, 125) << build->name() << output.err;
    EXPECT_FALSE(build->proxy().late_answer_came()) << build->name();
    EXPECT_LT(build->proxy().gave_up_after("/info", FaultProxy::Clock::now()),
              std::chrono::seconds(15) + kDeadlineMargin)
        << build->name();
    build->expect_in_order(output);
  }
  expect_nothing_is_left("late answers");
}

}  // namespace
}  // namespace belljar::testing
