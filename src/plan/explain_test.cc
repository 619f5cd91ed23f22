#include "plan/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/path.h"
#include "plan/plan_fixture.h"

namespace belljar::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Plan sample() {
  Host host;
  host.agent();
  host.facts.environment["ANTHROPIC_API_KEY"] = "sk-very-secret";
  host.policy.git = policy::GitAccess::kWrite;
  host.request.command = {"sh", "-c", "echo \x1b[2J hi"};
  return *host.plan();
}

TEST(Explain, TextNamesEveryMountWithItsReasonAndNoSecret) {
  const Plan plan = sample();
  const std::string text = explain_text(plan);
  for (const Mount& mount : plan.mounts) {
    EXPECT_THAT(text, HasSubstr(std::string(base::name_of(mount.target)))) << mount.target;
    EXPECT_THAT(text, HasSubstr("(" + mount.reason + ")"));
  }
  EXPECT_THAT(text, HasSubstr("ANTHROPIC_API_KEY=***"));
  EXPECT_THAT(text, Not(HasSubstr("sk-very-secret")));
  EXPECT_THAT(text, HasSubstr("git = write"));
  EXPECT_THAT(text, HasSubstr("api.anthropic.com  (preset claude)"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_TRUE(text.ends_with('\n'));
}

TEST(Explain, JsonHoldsThePlanAndNoSecret) {
  Plan plan = sample();
  plan.notes.push_back("bytes \xff here");
  const std::string text = explain_json(plan);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["mode"], "jail");
  EXPECT_EQ(json["network"], "deny");
  EXPECT_EQ(json["mounts"].size(), plan.mounts.size());
  EXPECT_EQ(json["command"][2], "echo \x1b[2J hi");
  EXPECT_EQ(json["proxy_port"], kProxyPort);
  EXPECT_EQ(json["limits"]["wall_seconds"], nullptr);
  EXPECT_EQ(json["notes"].back(), "bytes \\xff here");
  EXPECT_THAT(text, Not(HasSubstr("sk-very-secret")));
}

}  // namespace
}  // namespace belljar::plan
