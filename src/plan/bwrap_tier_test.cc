#include "plan/bwrap_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/explain.h"
#include "plan/plan_fixture.h"

namespace belljar::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct BwrapHost : Host {
  explicit BwrapHost(bool root = false) : Host(root) {
    policy.isolation.mode = policy::Mode::kBwrap;
    facts.bwrap.path = "/usr/bin/bwrap";
    facts.bwrap.version = "0.8.0";
  }
};

// As linux::find_bubblewrap() judges a version.
TEST(BwrapTier, NotesAVersionThatFollowsLinks) {
  for (const auto& [version, follows] :
       {std::pair{"0.8.0", true}, std::pair{"0.9.0", true}, std::pair{"0.10.0", true}, std::pair{"0.11.2", true},
        std::pair{"0.12.0", false}, std::pair{"0.13.1", false}}) {
    BwrapHost host;
    host.facts.bwrap.version = version;
    host.facts.bwrap.follows_links = follows;
    const auto plan = host.plan();
    ASSERT_TRUE(plan) << plan.error().message();
    const std::string text = explain_text(*plan);
    EXPECT_THAT(text, HasSubstr(std::string("made by bubblewrap ") + version));
    EXPECT_EQ(text.contains("CVE-2026-87766"), follows) << version;
  }
}

TEST(BwrapTier, RefusesWhatItCannotHoldAndNamesWhatWouldWork) {
  struct Case {
    const char* name;
    void (*change)(Host&);
    const char* message;
  };
  const Case cases[] = {
      {"none there", [](Host& h) { h.facts.bwrap = {.fault = "there is no bwrap in PATH", .remedy = "install it"}; },
       "use bubblewrap 'bwrap': there is no bwrap in PATH, refusing (install it, or use mode = \"jail\")"},
      {"never looked for", [](Host& h) { h.facts.bwrap = {}; },
       "use bubblewrap 'bwrap': it was not found, refusing (use mode = \"jail\")"},
      {"old", [](Host& h) { h.facts.bwrap.fault = "it is bubblewrap 0.7.0"; },
       "use bubblewrap '/usr/bin/bwrap': it is bubblewrap 0.7.0, refusing (use mode = \"jail\")"},
      {"transparent", [](Host& h) { h.policy.isolation.transparent = policy::Transparent::kRequired; },
       "isolation.transparent 'required': bubblewrap leaves no privilege that could redirect connections, refusing "
       "(say "
       "transparent = \"auto\", or use mode = \"jail\")"},
      {"files of scratch", [](Host& h) { h.policy.limits.scratch_files = 7; },
       "limits 'scratch_files': bubblewrap cannot limit the files of a tmpfs, refusing (leave it out (scratch_bytes "
       "holds), or use mode = \"jail\")"},
      {"a protected link",
       [](Host& h) {
         h.facts.protected_paths.push_back({.path = "/home/alice/work/CLAUDE.md", .kind = ProtectedPath::Kind::kLink});
       },
       "protect '/home/alice/work/CLAUDE.md': it is a symbolic link, which bubblewrap cannot keep from being replaced, "
       "refusing (add files.approve = [\"CLAUDE.md\"] if the agent may change it, or use mode = \"jail\")"},
  };
  for (const bool root : {false, true}) {
    for (const Case& test : cases) {
      BwrapHost host(root);
      ASSERT_EQ(host.refusal(), "") << root;
      test.change(host);
      EXPECT_EQ(host.refusal(), test.message) << test.name << root;
      // It is this mode that cannot hold it, or the host's bubblewrap that is not asked for.
      host.policy.isolation.mode = policy::Mode::kJail;
      EXPECT_EQ(host.refusal(), "") << test.name << root;
    }
  }
}

TEST(BwrapTier, RefusesSandboxesInside) {
  BwrapHost host;
  host.policy.isolation.nested = true;
  EXPECT_EQ(host.refusal(),
            "isolation.nested 'true': in mode = \"bwrap\" nothing bounds the namespaces that are made inside, refusing "
            "(use mode = \"jail\")");
}

TEST(BwrapTier, MakesNoPrivateCopiesAndCountsNoFiles) {
  BwrapHost host;
  host.facts.protected_paths.push_back({.path = "/home/alice/work/.vscode",
                                        .kind = ProtectedPath::Kind::kFolder,
                                        .treatment = ProtectedPath::Treatment::kPrivate});
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_NE(mount_at(*plan, "/home/alice/work/.vscode"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/.vscode")->kind, MountKind::kReadOnly);
  EXPECT_EQ(plan->limits.scratch_files, 0U);
  EXPECT_EQ(plan->transparent, policy::Transparent::kOff);
  EXPECT_EQ(plan->bwrap, "/usr/bin/bwrap");
  EXPECT_TRUE(any_contains(plan->notes, "'/home/alice/work/.vscode' and its like are read-only"));
  EXPECT_TRUE(any_contains(plan->notes, "made by bubblewrap 0.8.0 (/usr/bin/bwrap)"));
  EXPECT_TRUE(any_contains(plan->notes, "programs that know no proxy reach nothing"));
  EXPECT_THAT(explain_text(*plan), HasSubstr("bwrap\n"));
  EXPECT_THAT(explain_text(*plan), ::testing::Not(HasSubstr("0 files")));
  host.policy.isolation.mode = policy::Mode::kJail;
  EXPECT_EQ(mount_at(*host.plan(), "/home/alice/work/.vscode")->kind, MountKind::kPrivate);
}

TEST(BwrapTier, AnOpenNetworkIsTheSameNamedWeakening) {
  BwrapHost host;
  host.policy.isolation.network = policy::Network::kAllow;
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->weakenings.size(), 1U);
  EXPECT_THAT(plan->weakenings[0], StartsWith("network = allow: "));
  EXPECT_FALSE(any_contains(plan->notes, "know no proxy"));
}

}  // namespace
}  // namespace belljar::plan
