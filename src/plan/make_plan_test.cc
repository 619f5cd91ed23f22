#include "plan/make_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/path.h"
#include "plan/explain.h"
#include "plan/plan_fixture.h"
#include "policy/preset.h"

namespace belljar::plan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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

TEST(MakePlan, RefusesWhatThisVersionOrTheModeCannotHold) {
  struct Case {
    const char* name;
    void (*change)(Host&);
    const char* message;
  };
  const Case cases[] = {
      {"docker", [](Host& h) { h.policy.isolation.mode = policy::Mode::kDocker; },
       "isolation.mode 'docker': the container engine was not asked for the image, refusing"},
      {"none denies", [](Host& h) { h.policy.isolation.mode = policy::Mode::kNone; },
       "isolation.network 'deny': mode = \"none\" has no boundary to hold it, refusing (use mode = \"jail\", or say "
       "network = \"allow\")"},
      {"none hides",
       [](Host& h) {
         h.policy.isolation.mode = policy::Mode::kNone;
         h.policy.isolation.network = policy::Network::kAllow;
         h.policy.files.hide = {"/opt"};
       },
       "files.hide '/opt': mode = \"none\" has no boundary to hold it, refusing (use mode = \"jail\")"},
      {"memory", [](Host& h) { h.policy.limits.memory_bytes = 1; },
       "limits 'memory': this host cannot hold it: no group can be made, refusing (leave it out of the policy, or see "
       "'belljar doctor' for what gives you a cgroup)"},
      {"cpu", [](Host& h) { h.policy.limits.cpu_percent = 50; }, "limits 'cpu': this host cannot hold it"},
      {"pids", [](Host& h) { h.policy.limits.pids = 5; }, "limits 'pids': this host cannot hold it"},
      {"open files", [](Host& h) { h.policy.limits.open_files = 20001; },
       "limits 'open_files': 20001 is more than this host's hard limit of 20000, refusing (ask for less, or raise the "
       "hard limit (ulimit -H, limits.conf))"},
      {"processes", [](Host& h) { h.policy.limits.processes = 60001; },
       "limits 'processes': 60001 is more than this host's hard limit of 60000"},
      {"no command", [](Host& h) { h.request.command.clear(); }, "run: no command is given (belljar run -- COMMAND)"},
      {"NUL", [](Host& h) { h.request.command = {"sh", std::string("a\0b", 3)}; },
       "run 'a\\x00b': an argument holds a NUL byte, refusing"},
      {"bad host",
       [](Host& h) {
         h.agent();
         h.policy.agent.hosts = {"http://x"};
       },
       "host rule 'http://x'"},
  };
  for (const bool root : {false, true}) {
    for (const Case& test : cases) {
      Host host(root);
      test.change(host);
      EXPECT_THAT(host.refusal(), ::testing::StartsWith(test.message)) << test.name << (root ? " as root" : "");
    }
  }
}

// Each controller for itself: one may be there and another not.
TEST(MakePlan, LimitsByAGroupWhereOneIsToBeHad) {
  Host host;
  host.facts.memory_bytes = uint64_t{16} << 30U;
  host.facts.processors = 8;
  auto plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->limits.memory_bytes || plan->limits.cpu_percent || plan->limits.pids);
  EXPECT_EQ(plan->limits.memory_by, "no group can be made");
  EXPECT_THAT(explain_text(*plan), ::testing::HasSubstr("  pids      not limited: no group can be made\n"));
  for (CgroupFact* fact : {&host.facts.memory_group, &host.facts.cpu_group, &host.facts.pids_group}) {
    *fact = {.usable = true, .by = "cgroup v2 in /sys/fs/cgroup"};
  }
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->limits.memory_bytes, uint64_t{12} << 30U);
  EXPECT_EQ(plan->limits.cpu_percent, 800U);
  EXPECT_LT(plan->limits.pids, plan->limits.processes);
  EXPECT_THAT(explain_text(*plan), ::testing::HasSubstr("  memory    12 GiB (cgroup v2 in /sys/fs/cgroup)\n"));
  host.policy.limits.memory_bytes = uint64_t{64} << 20U;
  host.policy.limits.cpu_percent = 50;
  host.policy.limits.pids = 9;
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->limits.memory_bytes, uint64_t{64} << 20U);
  EXPECT_EQ(plan->limits.cpu_percent, 50U);
  EXPECT_EQ(plan->limits.pids, 9U);
}

TEST(MakePlan, GivesEveryLimitAValueThatTheHostCanHold) {
  Host host;
  host.facts.hard_open_files = 1024;
  host.policy.limits.wall_seconds = 60;
  host.policy.limits.scratch_bytes = 1;
  const auto plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->limits.open_files, 1024U);
  EXPECT_EQ(plan->limits.processes, 4096U);
  EXPECT_EQ(plan->limits.scratch_bytes, 1U);
  EXPECT_EQ(plan->limits.scratch_files, 1'000'000U);
  EXPECT_EQ(plan->limits.wall_seconds, 60U);
  EXPECT_FALSE(plan->limits.file_bytes);
}

TEST(MakePlan, DeniedNetworkAllowsTheAgentsHostsAndThePolicys) {
  Host host;
  host.agent();
  host.policy.isolation.allow_hosts = {{"api.anthropic.com", {}, false, "flag"}, {"example.com", 8443, false, "flag"}};
  const auto plan = host.plan();
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->hosts.size(), 3U);
  EXPECT_EQ(plan->hosts[0].pattern, "api.anthropic.com");
  EXPECT_EQ(plan->hosts[0].source, "preset claude");
  EXPECT_EQ(plan->hosts[1].pattern, "registry.npmjs.org");
  EXPECT_EQ(plan->hosts[2].pattern, "example.com");
  ASSERT_NE(mount_at(*plan, "/etc/hosts"), nullptr);
  EXPECT_THAT(mount_at(*plan, "/etc/hosts")->source, Not(HasSubstr("intranet")));
}

TEST(MakePlan, AllowedNetworkIsANamedWeakening) {
  Host host;
  host.policy.isolation.network = policy::Network::kAllow;
  host.policy.isolation.allow_hosts = {{"example.com", {}, false, "flag"}};
  auto plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->proxy_port, 0);
  EXPECT_TRUE(plan->hosts.empty());
  ASSERT_EQ(plan->weakenings.size(), 1U);
  EXPECT_THAT(plan->weakenings[0], HasSubstr("loopback"));
  EXPECT_THAT(plan->weakenings[0], HasSubstr("metadata"));
  EXPECT_THAT(plan->weakenings[0], Not(HasSubstr("abstract")));
  EXPECT_TRUE(any_contains(plan->notes, "allow_hosts has no effect"));
  EXPECT_EQ(variable(*plan, "HTTPS_PROXY"), nullptr);
  EXPECT_THAT(mount_at(*plan, "/etc/hosts")->source, HasSubstr("intranet"));
  host.facts.landlock_abi = 5;
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->weakenings[0], HasSubstr("abstract unix sockets"));
}

TEST(MakePlan, RefusesNestedWithTheHome) {
  Host host;
  host.policy.isolation.nested = true;
  host.policy.files.allow_home = true;
  const auto plan = host.plan();
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message(),
            "files.allow_home 'true': with nested = true the agent could move belljar's own folders out of the way, "
            "refusing (leave one of the two out)");
}

TEST(MakePlan, NestedIsANamedWeakeningThatLeavesProcAsItIs) {
  Host host;
  host.policy.agent = *policy::find_agent("claude");
  const auto stricter = host.plan();
  ASSERT_TRUE(stricter);
  EXPECT_NE(mount_at(*stricter, "/proc/sys"), nullptr);
  EXPECT_NE(variable(*stricter, "IS_SANDBOX"), nullptr);
  host.policy.isolation.nested = true;
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(plan->nested);
  EXPECT_THAT(plan->weakenings, ElementsAre(StartsWith("nested = true: ")));
  for (const Mount& mount : plan->mounts) EXPECT_THAT(mount.target, Not(StartsWith("/proc/")));
  EXPECT_NE(mount_at(*plan, "/etc/shadow"), nullptr) << "all else stays hidden";
  EXPECT_EQ(variable(*plan, "IS_SANDBOX"), nullptr) << "its own sandbox is to work";
  EXPECT_THAT(plan->command, Not(Contains(HasSubstr("sandbox"))));
}

TEST(MakePlan, ModeNoneSaysThatThereIsNoBoundary) {
  Host host;
  host.policy.isolation.mode = policy::Mode::kNone;
  host.policy.isolation.network = policy::Network::kAllow;
  host.facts.environment["SECRET_TOKEN"] = "x";
  host.policy.agent = *policy::find_agent("claude");
  const auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(plan->mounts.empty());
  EXPECT_THAT(plan->weakenings, ElementsAre(HasSubstr("NO BOUNDARY")));
  EXPECT_EQ(plan->program, "/usr/bin/sh");
  EXPECT_EQ(plan->identity.host_uid, 1000U);
  EXPECT_EQ(variable(*plan, "SECRET_TOKEN"), nullptr);
  EXPECT_EQ(variable(*plan, "IS_SANDBOX"), nullptr) << "there is none";
}

TEST(MakePlan, PutsTheAgentsArgumentsAfterItsOwnProgramOnly) {
  Host host;
  host.agent();
  host.policy.agent.extra_arguments = {"--step-aside"};
  auto plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->command, ElementsAre("sh", "-c", "true"));
  host.request.command = {"/usr/local/bin/claude", "-p", "hi"};
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->command, ElementsAre("/usr/local/bin/claude", "--step-aside", "-p", "hi"));
  host.request.command.clear();
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->command, ElementsAre("claude", "--step-aside"));
}

TEST(MakePlan, WithoutTheHostsNetworkTheResolverIsTheGuestsOwn) {
  Host host;
  auto plan = host.plan();
  ASSERT_TRUE(plan);
  const Mount* file = mount_at(*plan, "/etc/resolv.conf");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->kind, MountKind::kFile);
  EXPECT_THAT(file->source, ::testing::StartsWith("nameserver 127.0.0.1\n"));
  host.facts.resolver = through_link(path_fact(FileKind::kFile, "/run/systemd/resolve/stub-resolv.conf", 0, 0644),
                                     "/etc/resolv.conf", "../run/systemd/resolve/stub-resolv.conf");
  host.facts.resolver_text = "nameserver 127.0.0.53\n";
  plan = host.plan();
  ASSERT_TRUE(plan);
  file = mount_at(*plan, "/run/systemd/resolve/stub-resolv.conf");
  ASSERT_NE(file, nullptr);
  EXPECT_THAT(file->source, ::testing::StartsWith("nameserver 127.0.0.1\n"));
  EXPECT_EQ(mount_at(*plan, "/etc/resolv.conf"), nullptr);
}

TEST(MakePlan, ResolverBehindALinkIsAFileWhereItLeads) {
  Host host;
  host.policy.isolation.network = policy::Network::kAllow;
  host.facts.resolver = through_link(path_fact(FileKind::kFile, "/run/systemd/resolve/stub-resolv.conf", 0, 0644),
                                     "/etc/resolv.conf", "../run/systemd/resolve/stub-resolv.conf");
  host.facts.resolver_text = "nameserver 127.0.0.53\n";
  auto plan = host.plan();
  ASSERT_TRUE(plan);
  const Mount* file = mount_at(*plan, "/run/systemd/resolve/stub-resolv.conf");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->kind, MountKind::kFile);
  EXPECT_EQ(file->source, "nameserver 127.0.0.53\n");
  EXPECT_EQ(mount_at(*plan, "/run")->kind, MountKind::kScratch);
  EXPECT_EQ(mount_at(*plan, "/etc/resolv.conf"), nullptr) << "the bind of /etc already has the link";

  host.facts.resolver.kind = FileKind::kAbsent;
  plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/run/systemd/resolve/stub-resolv.conf"), nullptr);
  EXPECT_TRUE(any_contains(plan->notes, "which is missing"));
}

TEST(MakePlan, GivesTheGuestWhatTheHostHas) {
  Host host;
  host.facts.root_entries["/nix"].kind = RootEntry::Kind::kFolder;
  host.facts.root_entries["/bin"] = {RootEntry::Kind::kFolder, ""};
  host.facts.root_entries["/lib64"] = {RootEntry::Kind::kAbsent, ""};
  host.facts.localtime =
      through_link(path_fact(FileKind::kFile, "/var/db/zone", 0, 0644), "/etc/localtime", "/var/db/zone");
  host.facts.cpu_topology = false;
  const auto plan = host.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(mount_at(*plan, "/nix")->kind, MountKind::kBind);
  EXPECT_EQ(mount_at(*plan, "/bin")->kind, MountKind::kBind);
  EXPECT_EQ(mount_at(*plan, "/lib64"), nullptr);
  EXPECT_EQ(mount_at(*plan, "/var/db/zone")->kind, MountKind::kBind);
  EXPECT_EQ(mount_at(*plan, "/sys/devices/system/cpu"), nullptr);
}

TEST(MakePlan, StartsWhereAsked) {
  Host host;
  host.folder("/home/alice/work/sub");
  host.request.chdir = "sub";
  auto plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->chdir, "/home/alice/work/sub");
  host.request.chdir = "/tmp";
  plan = host.plan();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->chdir, "/tmp");
  host.request.chdir = "/home/alice/other";
  EXPECT_THAT(host.refusal(), HasSubstr("--chdir '/home/alice/other': it is not a folder, refusing"));
  host.folder("/home/alice/other");
  EXPECT_THAT(host.refusal(), HasSubstr("--chdir '/home/alice/other': the guest does not have it, refusing"));
}

}  // namespace
}  // namespace belljar::plan
