#include "plan/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_fixture.h"

namespace belljar::plan {
namespace {

using ::testing::HasSubstr;

TEST(Identity, OfAnOrdinaryUserStays) {
  const Identity id = *make_identity(Host().facts);
  EXPECT_EQ(id.guest_uid, 1000U);
  EXPECT_EQ(id.host_uid, 1000U);
  EXPECT_EQ(id.guest_gid, 1000U);
  EXPECT_FALSE(id.idmap);
}

TEST(Identity, OfRootIsNobodysIdThatWritesAsTheOwner) {
  const Identity id = *make_identity(Host(true).facts);
  EXPECT_EQ(id.host_uid, 0x6a000000U + 4242);
  EXPECT_EQ(id.host_gid, 0x6a000000U + 4242);
  EXPECT_EQ(id.guest_uid, 1000U);
  EXPECT_TRUE(id.idmap);
  EXPECT_EQ(id.disk_uid, 1000U);
}

TEST(Identity, InAFolderOfRootsIsAnIdWithoutConflict) {
  Host host(true);
  host.folder("/home/alice/work", 0);
  Identity id = *make_identity(host.facts);
  EXPECT_EQ(id.guest_uid, 1001U) << "1000 is alice";
  EXPECT_EQ(id.guest_gid, 1001U);
  EXPECT_EQ(id.disk_uid, 0U);
  EXPECT_NE(id.host_uid, 0U);
  host.facts.group += "carol:x:1001:\n";
  id = *make_identity(host.facts);
  EXPECT_EQ(id.guest_uid, 1002U);
  host.facts.paths["/home/alice/work"].uid = 1000;  // alice's folder, root's group
  id = *make_identity(host.facts);
  EXPECT_EQ(id.guest_uid, 1000U);
  EXPECT_EQ(id.guest_gid, 1002U);
}

TEST(Identity, NeverIsTheHostsRoot) {
  for (const uid_t owner : {0U, 1000U, 4000U}) {
    for (const gid_t group : {0U, 1000U, 4000U}) {
      for (const bool map : {false, true}) {
        for (const uint32_t range : {1U, 65536U, UINT32_MAX}) {
          Host host(true);
          PathFact& work = host.facts.paths["/home/alice/work"];
          work.uid = owner;
          work.gid = group;
          work.idmap_possible = map;
          host.facts.id_ranges = {{0, range}};
          const auto id = make_identity(host.facts);
          if (!id) continue;
          EXPECT_NE(id->host_uid, 0U);
          EXPECT_NE(id->host_gid, 0U);
          EXPECT_NE(id->guest_uid, 0U);
          EXPECT_NE(id->guest_gid, 0U);
          EXPECT_TRUE(id->idmap || id->host_uid == id->disk_uid);
        }
      }
    }
  }
}

TEST(Identity, WithoutAnIdMapIsTheOwnerOrARefusal) {
  Host host(true);
  host.facts.paths["/home/alice/work"].idmap_possible = false;
  host.facts.file_system = "overlay";
  const Identity id = *make_identity(host.facts);
  EXPECT_FALSE(id.idmap);
  EXPECT_EQ(id.host_uid, 1000U);
  host.facts.paths["/home/alice/work"].gid = 0;
  EXPECT_EQ(make_identity(host.facts)->host_gid, 1000U) << "alice's own group, not root's";
  host.facts.paths["/home/alice/work"].uid = 0;
  EXPECT_EQ(host.refusal(),
            "seal work folder '/home/alice/work': it belongs to root, and its file system (overlay) cannot map that to "
            "another id, refusing (give the folder to an ordinary user: chown -R USER /home/alice/work)");
  host.facts.paths["/home/alice/work"].idmap_possible = true;
  host.facts.id_ranges = {{0, 65536}};
  EXPECT_THAT(host.refusal(), HasSubstr("are not in this user namespace"));
}

TEST(Identity, MapsTheBindsOfTheOwnersFilesAndNotTheSystems) {
  Host host(true);
  host.policy.files.read = {"/data", "/mine"};
  host.folder("/data", 0, 0700);
  host.folder("/mine", 1000);
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(mount_at(*plan, "/home/alice/work")->idmap);
  EXPECT_TRUE(mount_at(*plan, "/mine")->idmap);
  EXPECT_FALSE(mount_at(*plan, "/data")->idmap);
  EXPECT_FALSE(mount_at(*plan, "/usr")->idmap);
  EXPECT_TRUE(any_contains(plan->notes, "cannot read '/data'"));
  host.policy.files.write = {"/data"};
  host.policy.files.read.clear();
  EXPECT_THAT(host.refusal(), HasSubstr("files.write '/data': it belongs to user 0, the work folder to user 1000"));
}

TEST(Accounts, AreMadeForIdsThatHaveNone) {
  Host host(true);
  host.folder("/home/alice/work", 0);
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, "/etc/passwd")->source, host.facts.passwd + "agent:x:1001:1001::/root:/bin/bash\n");
  EXPECT_EQ(mount_at(*plan, "/etc/group")->source, host.facts.group + "agent:x:1001:\n");
  EXPECT_EQ(variable(*plan, "USER")->value, "agent");
  const auto alice = Host().plan();
  ASSERT_TRUE(alice);
  EXPECT_EQ(mount_at(*alice, "/etc/passwd"), nullptr);
  EXPECT_EQ(variable(*alice, "USER")->value, "alice");
}

TEST(Accounts, CannotBeForgedByAName) {
  Host host;
  host.facts.uid = 7;
  host.facts.home = "/home/x\nevil:x:0:0::";
  host.facts.paths[host.facts.home] = path_fact(FileKind::kFolder, host.facts.home, 7);
  host.facts.passwd += "agent:x:55:55::/:/bin/sh\nnonsense\nbad:x:12x:0::/:\n";
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, "/etc/passwd")->source, host.facts.passwd + "agent_:x:7:1000::/:/bin/bash\n");
}

}  // namespace
}  // namespace belljar::plan
