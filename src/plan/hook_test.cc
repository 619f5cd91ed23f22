#include "plan/hook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_fixture.h"

namespace belljar::plan {
namespace {

using ::testing::HasSubstr;

struct HookHost : Host {
  HookHost() {
    policy.hook = {"http://127.0.0.1:7777/hook", "CONTROL_TOKEN", {}};
    facts.environment["CONTROL_TOKEN"] = "s3cret-s3cret";
  }
  [[nodiscard]] std::string refusal() const {
    const auto plan = make_plan(policy, facts, request);
    return plan ? "" : plan.error().message();
  }
};

TEST(PlannedHook, TellsTheGuestWhereAndNotTheToken) {
  const HookHost host;
  const auto plan = make_plan(host.policy, host.facts, host.request);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->hook, host.policy.hook);
  bool told = false;
  for (const EnvVar& variable : plan->env) {
    EXPECT_THAT(variable.value, ::testing::Not(HasSubstr("s3cret")));
    told = told || (variable.name == kHookVariable && variable.value == "http://hook.belljar/hook");
  }
  EXPECT_TRUE(told);
}

TEST(PlannedHook, BringsTheProgramThatPosts) {
  HookHost host;
  EXPECT_EQ(mount_at(*make_plan(host.policy, host.facts, host.request), "/run/belljar/belljar"), nullptr);
  host.facts.paths[kNotifyFact] = path_fact(FileKind::kFile, "/usr/bin/belljar-notify", 0);
  const auto plan = make_plan(host.policy, host.facts, host.request);
  ASSERT_TRUE(plan) << plan.error().message();
  const Mount* mount = mount_at(*plan, "/run/belljar/belljar");
  ASSERT_NE(mount, nullptr);
  EXPECT_EQ(mount->source, "/usr/bin/belljar-notify");
  EXPECT_FALSE(mount->writable);
}

TEST(PlannedHook, WithTheHostsNetworkIsTheUrlItself) {
  HookHost host;
  host.policy.isolation.network = policy::Network::kAllow;
  EXPECT_EQ(hook_of_guest(host.policy), "http://127.0.0.1:7777/hook");
}

TEST(PlannedHook, RefusesATokenThatTheGuestWouldGet) {
  HookHost host;
  host.policy.env.allow = {"CONTROL_TOKEN"};
  EXPECT_THAT(host.refusal(), HasSubstr("the guest would get it as CONTROL_TOKEN, refusing"));
  host.policy.env.allow = {};
  host.policy.env.set = {{"OTHER", "s3cret-s3cret"}};
  EXPECT_THAT(host.refusal(), HasSubstr("the guest would get it as OTHER, refusing"));
}

TEST(PlannedHook, RefusesATokenThatIsNoneOrGoesNowhere) {
  HookHost host;
  host.facts.environment["CONTROL_TOKEN"] = "two words";
  EXPECT_THAT(host.refusal(), HasSubstr("cannot stand in a header field, refusing"));
  host.facts.environment["CONTROL_TOKEN"] = "a\r\nX: y";
  EXPECT_THAT(host.refusal(), HasSubstr("cannot stand in a header field, refusing"));
  host.facts.environment.erase("CONTROL_TOKEN");
  EXPECT_THAT(host.refusal(), HasSubstr("is not set, refusing"));
  host.policy.hook.url.clear();
  EXPECT_THAT(host.refusal(), HasSubstr("no URL is named"));
}

}  // namespace
}  // namespace belljar::plan
