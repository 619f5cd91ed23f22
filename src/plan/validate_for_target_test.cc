#include "plan/validate_for_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/merge.h"

namespace belljar::plan {
namespace {

using ::testing::HasSubstr;

std::string refusal(const policy::Policy& policy, TargetKind target, LaunchKind launch = LaunchKind::kSession) {
  const auto fine = validate_for_target(policy, target, launch);
  return fine ? "" : fine.error().message();
}

TEST(ValidateForTarget, LetsTheUsualPolicyRunHereAndThere) {
  const policy::Policy policy = policy::built_in("claude");
  EXPECT_EQ(refusal(policy, TargetKind::kLocal), "");
  EXPECT_EQ(refusal(policy, TargetKind::kSsh), "");
}

TEST(ValidateForTarget, RefusesWhatWouldMeanAnotherMachineOverSsh) {
  policy::Policy policy = policy::built_in("");
  policy.isolation.expose = {{8080, 3000}};
  EXPECT_THAT(refusal(policy, TargetKind::kSsh), HasSubstr("refusing (leave it out; a port of the target's own"));
  EXPECT_EQ(refusal(policy, TargetKind::kLocal), "");
  policy = policy::built_in("");
  policy::HostRule port;
  port.pattern = policy::kHostName;
  port.port = 5432;
  port.host_port = true;
  policy.isolation.host_ports.push_back(port);
  EXPECT_THAT(refusal(policy, TargetKind::kSsh), HasSubstr("isolation.host_ports '5432'"));
  policy = policy::built_in("");
  policy.audit.file = "/var/log/audit.jsonl";
  EXPECT_THAT(refusal(policy, TargetKind::kSsh), HasSubstr("would be written on the target"));
  policy = policy::built_in("");
  for (const char* url : {"http://127.0.0.1:7/h", "http://localhost:7/h", "http://[::1]:7/h"}) {
    policy.hook.url = url;
    EXPECT_THAT(refusal(policy, TargetKind::kSsh), HasSubstr("the target's own loopback, refusing")) << url;
  }
  for (const char* url : {"https://127.0.0.1:7/h", "https://localhost/h"}) {
    policy.hook.url = url;
    EXPECT_THAT(refusal(policy, TargetKind::kSsh), HasSubstr("the target's own loopback, refusing")) << url;
  }
  policy.hook.url = "https://control.example:7/h";
  EXPECT_EQ(refusal(policy, TargetKind::kSsh), "");
  policy.hook.url = "http://control.example:7/h";
  EXPECT_EQ(refusal(policy, TargetKind::kSsh), "");
}

TEST(ValidateForTarget, ADisposableMachineIsTheIsolation) {
  policy::Policy policy = policy::built_in("");
  EXPECT_THAT(refusal(policy, TargetKind::kMachine), HasSubstr("is already the isolation, refusing"));
  EXPECT_EQ(refusal(policy, TargetKind::kMachine, LaunchKind::kTask), "");
  const policy::Policy task = policy_on(policy, TargetKind::kMachine, LaunchKind::kTask);
  EXPECT_EQ(task.isolation.mode, policy::Mode::kNone);
  EXPECT_EQ(task.isolation.network, policy::Network::kAllow);
  EXPECT_EQ(policy_on(policy, TargetKind::kSsh, LaunchKind::kTask), policy);
  policy.isolation.mode = policy::Mode::kNone;
  EXPECT_EQ(refusal(policy, TargetKind::kMachine), "");
}

}  // namespace
}  // namespace belljar::plan
