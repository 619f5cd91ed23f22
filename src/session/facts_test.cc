#include "session/facts.h"

#include <gtest/gtest.h>

#include "plan/make_plan.h"

namespace belljar::session {
namespace {

TEST(GatherFacts, OfThisProcessMakesAPlan) {
  auto launcher = current_launcher();
  ASSERT_TRUE(launcher) << launcher.error().message();
  launcher->environment["PATH"] = "/usr/bin:/bin";
  const plan::Request request{.command = {"sh"}};
  const auto facts = gather_facts({}, request, *launcher);
  ASSERT_TRUE(facts) << facts.error().message();
  EXPECT_EQ(facts->program.state, plan::ProgramFact::State::kFound);
  EXPECT_EQ(facts->root_entries.at("/usr").kind, plan::RootEntry::Kind::kFolder);
  EXPECT_FALSE(facts->devices.empty());
}

}  // namespace
}  // namespace belljar::session
