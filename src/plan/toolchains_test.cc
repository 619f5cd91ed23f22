#include "plan/toolchains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_fixture.h"

namespace belljar::plan {
namespace {

Host host_with_caches(bool root = false) {
  Host host(root);
  host.facts.cache_folder = host.facts.home + "/.cache/belljar";
  return host;
}

TEST(Toolchains, AreReadOnlyAndWithoutCredentials) {
  Host host;
  for (const char* name :
       {"/home/alice/.cargo", "/home/alice/.cargo/bin", "/home/alice/.rustup", "/home/alice/.pyenv"}) {
    host.folder(name);
  }
  host.facts.environment["PATH"] = "/home/alice/.cargo/bin:/home/alice/.pyenv/shims:/usr/bin";
  host.folder("/home/alice/.pyenv/shims");
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  for (const char* name : {"/home/alice/.cargo/bin", "/home/alice/.rustup", "/home/alice/.pyenv"}) {
    ASSERT_NE(mount_at(*plan, name), nullptr) << name;
    EXPECT_FALSE(mount_at(*plan, name)->writable);
  }
  EXPECT_EQ(mount_at(*plan, "/home/alice/.cargo"), nullptr);
  EXPECT_EQ(variable(*plan, "PATH")->value, "/home/alice/.cargo/bin:/home/alice/.pyenv/shims:/usr/bin");
}

TEST(Toolchains, AreLeftOutWhenThePolicySaysSo) {
  Host host = host_with_caches();
  host.folder("/home/alice/.rustup");
  host.policy.files.toolchains = policy::Toolchains::kNone;
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, "/home/alice/.rustup"), nullptr);
  EXPECT_TRUE(plan->caches.empty());
}

TEST(Toolchains, TooLargeToBeLookedThroughAreLeftOut) {
  Host host;
  for (const char* name : {"/home/alice/.rustup", "/home/alice/.pyenv"}) host.folder(name);
  host.facts.tools_unseen = {"/home/alice/.rustup"};
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, "/home/alice/.rustup"), nullptr);
  EXPECT_NE(mount_at(*plan, "/home/alice/.pyenv"), nullptr);
  EXPECT_TRUE(any_contains(plan->notes, "~/.rustup was left out"));
}

TEST(Toolchains, NeverShowWhatAGuestCouldHaveLedTo) {
  Host host;
  host.facts.paths["/home/alice/.pyenv"] =
      through_link(path_fact(FileKind::kFolder, "/home/alice/work/pyenv", 1000), "/home/alice/.pyenv", "work/pyenv");
  host.facts.paths["/home/alice/.rustup"] = through_link(
      through_link(path_fact(FileKind::kFolder, "/home/alice/private", 1000), "/home/alice/.rustup", "work/r"),
      "/home/alice/work/r", "../private");
  host.facts.paths["/home/alice/go/bin"] =
      through_link(path_fact(FileKind::kFolder, "/home/alice/.ssh", 1000), "/home/alice/go/bin", "../.ssh");
  host.facts.tool_links = {through_link(path_fact(FileKind::kFile, "/home/alice/.ssh/id", 1000),
                                        "/home/alice/.local/bin/x", "/home/alice/.ssh/id")};
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  for (const char* name : {"/home/alice/private", "/home/alice/.ssh", "/home/alice/.ssh/id"}) {
    EXPECT_EQ(mount_at(*plan, name), nullptr) << name;
  }
}

TEST(Toolchains, LinksOfProgramsAreFollowed) {
  Host host;
  host.folder("/home/alice/.local/bin");
  host.facts.tool_links = {
      through_link(path_fact(FileKind::kFile, "/home/alice/.local/share/pipx/venvs/black/bin/black", 1000),
                   "/home/alice/.local/bin/black", "../share/pipx/venvs/black/bin/black"),
      through_link(path_fact(FileKind::kFile, "/home/alice/tools/jq", 1000), "/home/alice/.local/bin/jq",
                   "../../tools/jq"),
      path_fact(FileKind::kAbsent, "/home/alice/gone", 0)};
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_NE(mount_at(*plan, "/home/alice/.local/share/pipx/venvs/black"), nullptr);
  EXPECT_NE(mount_at(*plan, "/home/alice/tools/jq"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/home/alice/tools"), nullptr);
}

TEST(Caches, AreTheProjectsOwnAndBelljars) {
  Host host = host_with_caches();
  auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  const Mount* registry = mount_at(*plan, "/home/alice/.cargo/registry");
  ASSERT_NE(registry, nullptr);
  EXPECT_EQ(registry->source, "/home/alice/.cache/belljar/projects/home-alice-work/=/cargo-registry");
  EXPECT_TRUE(registry->writable);
  EXPECT_THAT(plan->caches, ::testing::Contains(registry->source));
  for (const Mount& mount : plan->mounts) {
    if (!mount.source.starts_with("/home/alice/.cache")) continue;
    EXPECT_TRUE(mount.source.starts_with("/home/alice/.cache/belljar/projects/home-alice-work/=/")) << mount.source;
  }
  host.facts.work_folder = "/home/alice/.cache/x";
  host.folder("/home/alice/.cache/x");
  plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(mount_at(*plan, "/home/alice/.cache"), nullptr);
}

TEST(Caches, HaveANameThatNoOtherProjectHas) {
  EXPECT_EQ(cache_name("/home/a-b/c"), "home-a_2db-c/=");
  EXPECT_NE(cache_name("/a/b"), cache_name("/a-b"));
  EXPECT_NE(cache_name("/a/b"), cache_name("/a_2fb"));
  const std::string deep = cache_name("/" + std::string(199, 'x') + "/y/z");
  EXPECT_EQ(deep, std::string(199, 'x') + "-/y-z/=");
  EXPECT_EQ(cache_name("/a\xff\n="), "a_ff_0a_3d/=");
}

TEST(Caches, OfRootGoThroughTheIdMap) {
  Host host = host_with_caches(true);
  auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(mount_at(*plan, "/root/.npm")->idmap);
  host.facts.paths["/root"].idmap_possible = false;
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/root/.npm"), nullptr);
  EXPECT_TRUE(any_contains(plan->notes, "package caches are the session's own"));
}

}  // namespace
}  // namespace belljar::plan
