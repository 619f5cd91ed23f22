#include "plan/make_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/path.h"
#include "plan/plan_fixture.h"

namespace belljar::plan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(MakePlan, GivesAnOrdinaryUserTheSystemAndTheWorkFolder) {
  const auto plan = Host().plan();
  ASSERT_TRUE(plan) << plan.error().message();
  const Mount* usr = mount_at(*plan, "/usr");
  ASSERT_NE(usr, nullptr);
  EXPECT_EQ(usr->kind, MountKind::kBind);
  EXPECT_FALSE(usr->writable);
  EXPECT_EQ(mount_at(*plan, "/bin")->kind, MountKind::kLink);
  EXPECT_EQ(mount_at(*plan, "/bin")->source, "usr/bin");
  EXPECT_EQ(mount_at(*plan, "/nix"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/etc/shadow")->kind, MountKind::kMask);
  EXPECT_EQ(mount_at(*plan, "/etc/krb5.keytab"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/home/alice")->kind, MountKind::kScratch);
  const Mount* work = mount_at(*plan, "/home/alice/work");
  EXPECT_TRUE(work->writable);
  EXPECT_FALSE(work->idmap);
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/.git")->kind, MountKind::kReadOnly);
  EXPECT_THAT(plan->writable, Contains("/home/alice/work"));
  EXPECT_THAT(plan->writable, Contains("/tmp"));
  EXPECT_THAT(plan->writable, Not(Contains("/usr")));
  EXPECT_EQ(plan->program, "/usr/bin/sh");
  EXPECT_EQ(plan->chdir, "/home/alice/work");
  EXPECT_EQ(plan->proxy_port, kProxyPort);
  EXPECT_TRUE(plan->weakenings.empty());
}

TEST(MakePlan, OrdersParentsFirstAndMasksLast) {
  Host host;
  host.agent();
  host.folder("/home/alice/.claude");
  const auto plan = host.plan();
  ASSERT_TRUE(plan);
  std::map<std::string, size_t> place;
  for (size_t i = 0; i < plan->mounts.size(); ++i) place[plan->mounts[i].target] = i;
  EXPECT_EQ(place.size(), plan->mounts.size()) << "a target occurs twice";
  for (const auto& [path, at] : place) {
    for (std::string up = base::parent_of(path); up != "/"; up = base::parent_of(up)) {
      const auto above = place.find(up);
      EXPECT_TRUE(above == place.end() || above->second < at) << up << " after " << path;
    }
  }
  const auto first_mask = std::ranges::find(plan->mounts, MountKind::kMask, &Mount::kind);
  EXPECT_TRUE(std::all_of(first_mask, plan->mounts.end(), [](const Mount& m) { return m.kind == MountKind::kMask; }));
}

}  // namespace
}  // namespace belljar::plan
