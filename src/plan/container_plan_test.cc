#include "plan/container_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plan/plan_fixture.h"

namespace belljar::plan {
namespace {

using ::testing::HasSubstr;

struct ContainerHost : Host {
  ContainerHost() {
    policy.isolation.mode = policy::Mode::kDocker;
    facts.engine.socket = "/run/engine.sock";
    facts.engine.image_id = "sha256:0123";
    facts.engine.image_env = {"PATH=/opt/image/bin:/bin", "LANG=C.UTF-8", "HOME=/nowhere"};
    facts.program = {};
  }
};

TEST(ContainerPlan, TakesItsSystemFromTheImageAndNothingOfThisHosts) {
  ContainerHost host;
  host.agent();
  host.folder("/home/alice/.claude/todos");
  const auto plan = host.plan();
  ASSERT_TRUE(plan.has_value()) << plan.error().message();
  EXPECT_EQ(plan->container.image, kDefaultImage);
  EXPECT_EQ(plan->container.image_id, "sha256:0123");
  EXPECT_EQ(plan->program, "sh") << "looked for inside";
  for (const char* path : {"/usr", "/etc", "/bin", "/proc", "/dev"}) EXPECT_EQ(mount_at(*plan, path), nullptr) << path;
  for (const char* path : {"/tmp", "/var/tmp", "/dev/shm", "/home/alice"}) {
    ASSERT_NE(mount_at(*plan, path), nullptr) << path;
    EXPECT_EQ(mount_at(*plan, path)->kind, MountKind::kScratch);
  }
  EXPECT_TRUE(mount_at(*plan, "/home/alice/work")->writable);
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/.git")->kind, MountKind::kReadOnly);
  EXPECT_TRUE(mount_at(*plan, "/home/alice/.claude/todos")->writable);
  EXPECT_THAT(mount_at(*plan, "/etc/passwd")->source, HasSubstr("alice:x:1000:1000::/home/alice:/bin/sh\n"));
}

TEST(ContainerPlan, HasTheImagesPathAndWhatElseItSets) {
  const auto plan = ContainerHost().plan();
  ASSERT_TRUE(plan.has_value()) << plan.error().message();
  EXPECT_EQ(variable(*plan, "PATH")->value, "/opt/image/bin:/bin");
  EXPECT_EQ(variable(*plan, "LANG")->value, "C.UTF-8");
  EXPECT_EQ(variable(*plan, "HOME")->value, "/home/alice") << "what the plan sets itself wins";
  EXPECT_TRUE(std::ranges::is_sorted(plan->env, {}, &EnvVar::name));
}

TEST(ContainerPlan, HasNoMountThatAnEngineCannotMake) {
  ContainerHost host;
  const auto add = [&](const char* path, ProtectedPath::Kind kind, ProtectedPath::Treatment treatment) {
    ProtectedPath one;
    one.path = path;
    one.kind = kind;
    one.treatment = treatment;
    host.facts.protected_paths.push_back(one);
  };
  add("/home/alice/work/.vscode", ProtectedPath::Kind::kFolder, ProtectedPath::Treatment::kPrivate);
  add("/home/alice/work/.envrc", ProtectedPath::Kind::kLink, ProtectedPath::Treatment::kMask);
  const auto plan = host.plan();
  ASSERT_TRUE(plan.has_value()) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/.vscode")->kind, MountKind::kReadOnly) << "no overlay of a host's folder";
  EXPECT_EQ(mount_at(*plan, "/home/alice/work/.envrc"), nullptr) << "an engine would follow it";
  EXPECT_TRUE(any_contains(plan->notes, "'/home/alice/work/.envrc' is a link that programs obey"));
}

TEST(ContainerPlan, RefusesWhatAnEngineCannotGive) {
  const auto refusal = [](void (*change)(ContainerHost&)) {
    ContainerHost host;
    change(host);
    return host.refusal();
  };
  EXPECT_THAT(refusal([](ContainerHost& h) { h.facts.engine.fault = base::Error{"open", "it", 0, "not there", ""}; }),
              HasSubstr("open 'it': not there"));
  EXPECT_THAT(refusal([](ContainerHost& h) { h.policy.isolation.nested = true; }), HasSubstr("isolation.nested"));
  EXPECT_THAT(refusal([](ContainerHost& h) { h.policy.files.allow_home = true; }), HasSubstr("files.allow_home"));
  EXPECT_THAT(refusal([](ContainerHost& h) { h.policy.limits.processes = 5; }), HasSubstr("say limits.pids"));
  EXPECT_THAT(refusal([](ContainerHost& h) { h.policy.isolation.transparent = policy::Transparent::kRequired; }),
              HasSubstr("isolation.transparent"));
}

}  // namespace
}  // namespace belljar::plan
