// Findings of hosts we do not have, judged; and the findings of this one, looked at.
#include "linux/host_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "linux/host_cgroups.h"
#include "linux/host_trials.h"
#include "linux/landlock_domain.h"
#include "linux/seal.h"
#include "linux/seccomp_filter.h"

namespace belljar::linux {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// An ordinary user on a host where all is well.
HostEvidence good_host() {
  HostEvidence out;
  out.kernel = "6.12.1-amd64";
  out.machine = "x86_64";
  out.uid = 1000;
  out.folder = "/home/u/work";
  out.folder_uid = 1000;
  out.program = "/usr/local/bin/belljar";
  out.max_user_namespaces = 15000;
  out.landlock_abi = 6;
  for (const char* name : {"memory", "cpu", "pids"}) {
    CgroupController controller;
    controller.name = name;
    controller.version = 2;
    controller.folder = "/sys/fs/cgroup/user.slice";
    out.cgroups.push_back(controller);
  }
  out.open_files = 1048576;
  out.bwrap = {"/usr/bin/bwrap", {0, 12, 0}, "", ""};
  out.docker = "/usr/bin/docker";
  out.docker_socket = "/var/run/docker.sock";
  return out;
}

// Every trial that starts with a user namespace fails as the first did.
HostEvidence without_user_namespaces(int error, const char* step) {
  HostEvidence out = good_host();
  out.user_namespace = out.namespaces = out.mounts = out.proc = out.overlay = out.redirect = Trial{error, step};
  return out;
}

HostFact fact(const std::vector<HostFact>& facts, const std::string& key) {
  const auto found = std::ranges::find(facts, key, &HostFact::key);
  EXPECT_NE(found, facts.end()) << key;
  return found == facts.end() ? HostFact{} : *found;
}

HostFact judged(const HostEvidence& evidence, const std::string& key) {
  return fact(judge(evidence), key);
}

TEST(HostFacts, AGoodHostHasNoGap) {
  const auto facts = judge(good_host());
  EXPECT_EQ(facts.size(), 13U);
  for (const HostFact& one : facts) {
    EXPECT_TRUE(one.ok) << one.key;
    EXPECT_TRUE(one.remedy.empty()) << one.key;
    EXPECT_FALSE(one.why.empty()) << one.key;
  }
  EXPECT_TRUE(jail_can_start(facts));
}

// Whatever single thing is missing, its fact is not ok, has a remedy, and only what the jail needs stops the jail.
TEST(HostFacts, EachGapIsSeenAndHasARemedy) {
  struct Gap {
    const char* key;
    bool stops_jail;
    std::function<void(HostEvidence&)> make;
  };
  const Trial refused{EPERM, "step"};
  const std::vector<Gap> gaps = {
      {"kernel", true, [](HostEvidence& e) { e.kernel = "5.11.22-generic"; }},
      {"user_namespaces", true, [&](HostEvidence& e) { e.user_namespace = refused; }},
      {"namespaces", true, [&](HostEvidence& e) { e.namespaces = refused; }},
      {"mounts", true, [&](HostEvidence& e) { e.mounts = refused; }},
      {"proc", true, [&](HostEvidence& e) { e.proc = refused; }},
      {"seccomp", true, [&](HostEvidence& e) { e.seccomp = refused; }},
      {"landlock", false, [](HostEvidence& e) { e.landlock_abi = 5; }},
      {"landlock", false, [](HostEvidence& e) { e.landlock_abi = 1; }},
      {"open_files", false, [](HostEvidence& e) { e.open_files = 1024; }},
      {"cgroups", false, [](HostEvidence& e) { e.cgroups[1].error = EACCES; }},
      {"cgroups", false, [](HostEvidence& e) { e.cgroups.clear(); }},
      {"redirect", false, [&](HostEvidence& e) { e.redirect = refused; }},
      {"redirect", false, [&](HostEvidence& e) { e.redirect = Trial{ENOENT, "nf_tables redirect"}; }},
      {"overlay", false, [&](HostEvidence& e) { e.overlay = refused; }},
      {"bwrap", false, [](HostEvidence& e) { e.bwrap = {"", {}, "there is no bwrap in PATH", "install it"}; }},
      {"bwrap", false, [](HostEvidence& e) { e.bwrap_said = "bwrap: No permissions to create new namespace"; }},
      {"docker", false, [](HostEvidence& e) { e.docker.clear(); }},
      {"docker", false, [](HostEvidence& e) { e.docker_error = ECONNREFUSED; }},
      {"docker", false, [](HostEvidence& e) { e.docker_error = EACCES; }},
      {"id_mapped", true,
       [](HostEvidence& e) {
         e.uid = 0;
         e.folder_uid = 0;
         e.idmap = Trial{EINVAL, "mount_setattr MOUNT_ATTR_IDMAP"};
       }},
      {"id_mapped", false,
       [](HostEvidence& e) {
         e.uid = 0;
         e.idmap = Trial{EINVAL, "mount_setattr MOUNT_ATTR_IDMAP"};
       }},
  };
  for (const Gap& gap : gaps) {
    SCOPED_TRACE(gap.key);
    HostEvidence evidence = good_host();
    gap.make(evidence);
    const auto facts = judge(evidence);
    for (const HostFact& one : facts) {
      EXPECT_EQ(one.ok, one.key != gap.key) << one.key;
      EXPECT_EQ(one.remedy.empty(), one.ok) << one.key;
    }
    EXPECT_EQ(jail_can_start(facts), !gap.stops_jail);
  }
}

TEST(HostFacts, Ubuntu2404GetsTheAppArmorProfile) {
  // There unshare works, but the process is put under a profile without capabilities.
  HostEvidence evidence = good_host();
  evidence.apparmor_restrict_unprivileged_userns = 1;
  evidence.mounts = Trial{EACCES, "mount MS_PRIVATE on /"};
  EXPECT_THAT(judged(evidence, "mounts").remedy,
              AllOf(HasSubstr("sudo tee /etc/apparmor.d/belljar"), HasSubstr("userns,"),
                    HasSubstr("profile belljar \"/usr/local/bin/belljar\" flags=(unconfined)"),
                    HasSubstr("sudo apparmor_parser -r /etc/apparmor.d/belljar")));
  evidence.apparmor_restrict_unprivileged_userns = 0;
  EXPECT_THAT(judged(evidence, "mounts").remedy, Not(HasSubstr("apparmor_parser")));
}

TEST(HostFacts, AppArmorReadsThePathAsItIs) {
  EXPECT_THAT(apparmor_profile("/opt/a*b/{c}/\"d\"/bell jar"), HasSubstr(R"("/opt/a\*b/\{c\}/\"d\"/bell jar")"));
}

TEST(HostFacts, OldDebianGetsTheSysctl) {
  HostEvidence evidence = without_user_namespaces(EPERM, "unshare CLONE_NEWUSER");
  evidence.unprivileged_userns_clone = 0;
  EXPECT_THAT(judged(evidence, "user_namespaces").remedy,
              HasSubstr("sudo sysctl -w kernel.unprivileged_userns_clone=1"));
  EXPECT_THAT(judged(evidence, "user_namespaces").why, HasSubstr("unshare CLONE_NEWUSER: Operation not permitted"));
}

TEST(HostFacts, ALimitOfZeroGetsTheSysctl) {
  HostEvidence evidence = without_user_namespaces(ENOSPC, "unshare CLONE_NEWUSER");
  evidence.max_user_namespaces = 0;
  EXPECT_THAT(judged(evidence, "user_namespaces").remedy, HasSubstr("sysctl -w user.max_user_namespaces=15000"));
  evidence.max_user_namespaces = 10;
  EXPECT_THAT(judged(evidence, "user_namespaces").remedy, HasSubstr("/proc/sys/user"));
}

TEST(HostFacts, ContainersAndChrootsAreNamed) {
  HostEvidence evidence = without_user_namespaces(EPERM, "unshare CLONE_NEWUSER");
  evidence.container = true;
  EXPECT_THAT(judged(evidence, "user_namespaces").remedy, HasSubstr("seccomp=unconfined"));
  evidence.container = false;
  evidence.seccomp_mode = 2;
  EXPECT_THAT(judged(evidence, "user_namespaces").remedy, HasSubstr("seccomp=unconfined"));
  evidence.chroot = true;
  EXPECT_THAT(judged(evidence, "user_namespaces").remedy, HasSubstr("chroot"));

  HostEvidence masked = good_host();
  masked.proc = Trial{EPERM, "mount proc"};
  EXPECT_THAT(judged(masked, "proc").remedy, HasSubstr("systempaths=unconfined"));
}

TEST(HostFacts, LandlockOffAtBootIsNotLandlockMissing) {
  HostEvidence evidence = good_host();
  evidence.landlock_abi = 0;
  evidence.landlock_error = EOPNOTSUPP;
  EXPECT_THAT(judged(evidence, "landlock").remedy, HasSubstr("lsm=landlock"));
  evidence.landlock_error = ENOSYS;
  EXPECT_THAT(judged(evidence, "landlock").remedy, HasSubstr("CONFIG_SECURITY_LANDLOCK"));
}

TEST(HostFacts, KernelVersions) {
  EXPECT_TRUE(kernel_at_least("5.12.0", 5, 12));
  EXPECT_TRUE(kernel_at_least("6.1.0-18-amd64", 5, 12));
  EXPECT_TRUE(kernel_at_least("5.15", 5, 12));
  EXPECT_FALSE(kernel_at_least("5.9.1", 5, 12));
  EXPECT_FALSE(kernel_at_least("4.18.0-553.el8", 5, 12));
  EXPECT_FALSE(kernel_at_least("", 5, 12));
  EXPECT_FALSE(kernel_at_least("6", 5, 12));
  EXPECT_FALSE(kernel_at_least("x.y", 5, 12));
}

TEST(HostCgroups, PlacesOfTheThreeLayouts) {
  const auto v2 = cgroup_places("30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
                                "0::/user.slice/session-1.scope\n");
  ASSERT_EQ(v2.size(), 1U);
  EXPECT_EQ(v2[0].version, 2);
  EXPECT_EQ(v2[0].folder, "/sys/fs/cgroup/user.slice/session-1.scope");

  const std::string mounts =
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
      "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
      "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
      "41 31 0:38 / /sys/fs/cgroup/with\\040space rw - cgroup2 cgroup2 rw\n";
  const auto hybrid = cgroup_places(mounts, "4:memory:/docker/abc/inner\n2:cpu,cpuacct:/\n1:name=systemd:/x\n0::/\n");
  ASSERT_EQ(hybrid.size(), 3U);  // systemd's own hierarchy limits nothing
  EXPECT_EQ(hybrid[0].folder, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_THAT(hybrid[0].controllers, ::testing::ElementsAre("cpu", "cpuacct"));
  EXPECT_EQ(hybrid[1].folder, "/sys/fs/cgroup/memory/inner");
  EXPECT_EQ(hybrid[2].folder, "/sys/fs/cgroup/with space");

  EXPECT_TRUE(cgroup_places("", "").empty());
  EXPECT_TRUE(cgroup_places("garbage\n - \n - cgroup\n", ":::\n::\n").empty());
}

// The findings of this host agree with what can be seen in other ways.
TEST(HostEvidence, IsThisHost) {
  const HostEvidence evidence = gather_evidence("/nonexistent:relative:/bin", "tcp://10.0.0.1:2375");
  utsname names{};
  ASSERT_EQ(uname(&names), 0);
  EXPECT_EQ(evidence.kernel, names.release);
  EXPECT_EQ(evidence.uid, geteuid());
  EXPECT_EQ(evidence.landlock_abi, landlock_abi());
  EXPECT_EQ(evidence.idmap.has_value(), geteuid() == 0);
  EXPECT_TRUE(evidence.seccomp.worked()) << evidence.seccomp.step;
  EXPECT_EQ(evidence.docker_error, EAFNOSUPPORT);
  EXPECT_EQ(evidence.cgroups.size(), 3U);
  EXPECT_FALSE(evidence.program.empty());
  EXPECT_FALSE(judge(evidence).empty());
}

int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

int worked(const Trial& trial) {
  return trial.worked() ? 0 : 1;
}

// Under the agent's own filter nothing of a launch works: each trial must see that.
TEST(HostTrials, SeeARefusal) {
  const auto refused_at = [](const std::function<Trial()>& trial, const char* step) {
    return in_child([&] {
      if (set_no_new_privs() != 0 || install_filter(agent_filter()) != 0) return 100;
      const Trial outcome = trial();
      return outcome.error == EPERM && outcome.step == step ? 0 : 1;
    });
  };
  EXPECT_EQ(refused_at([] { return try_user_namespace(); }, "unshare CLONE_NEWUSER"), 0);
  EXPECT_EQ(refused_at([] { return try_namespaces(true); }, "unshare CLONE_NEWNS"), 0);
  EXPECT_EQ(refused_at([] { return try_mounts(false); }, "unshare CLONE_NEWUSER"), 0);
  EXPECT_EQ(refused_at([] { return try_proc(true); }, "unshare CLONE_NEWNS"), 0);
  EXPECT_EQ(refused_at([] { return try_overlay(true); }, "unshare CLONE_NEWNS"), 0);
  EXPECT_EQ(refused_at([] { return try_redirect(true); }, "unshare CLONE_NEWNET"), 0);
  EXPECT_EQ(refused_at([] { return try_idmap("/tmp"); }, "user namespace for the map"), 0);
}

// A filter that refuses one call with EPERM.
int refuse_call(uint32_t number) {
  const std::array<sock_filter, 4> program{
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  return set_no_new_privs() != 0 ? 1 : install_filter(program);
}

TEST(HostTrials, SeeEachStepRefused) {
  const bool as_root = geteuid() == 0;
  struct Step {
    uint32_t number;
    std::function<Trial()> trial;
    const char* step;
  };
  const std::vector<Step> steps = {
      {SYS_fsopen, [&] { return try_mounts(as_root); }, "fsopen"},
      {SYS_fsmount, [&] { return try_mounts(as_root); }, "fsmount"},
      {SYS_move_mount, [&] { return try_mounts(as_root); }, "move_mount"},
      {SYS_open_tree, [&] { return try_mounts(as_root); }, "open_tree"},
      {SYS_mount_setattr, [&] { return try_mounts(as_root); }, "mount_setattr"},
      {SYS_fsopen, [&] { return try_proc(as_root); }, "mount proc"},
      {SYS_seccomp, [] { return try_seccomp(); }, "seccomp SECCOMP_SET_MODE_FILTER"},
  };
  for (const Step& step : steps) {
    EXPECT_EQ(in_child([&] { return worked(step.trial()); }), 0) << "this host cannot do it at all: " << step.step;
    EXPECT_EQ(in_child([&] {
                if (refuse_call(step.number) != 0) return 100;
                const Trial outcome = step.trial();
                return outcome.error == EPERM && outcome.step == step.step ? 0 : 1;
              }),
              0)
        << step.step;
  }
}

TEST(HostTrials, LeaveNothingBehind) {
  const auto state = [] {
    std::array<char, 64> user{};
    std::array<char, 64> mounts{};
    EXPECT_GT(readlink("/proc/self/ns/user", user.data(), user.size()), 0);
    EXPECT_GT(readlink("/proc/self/ns/mnt", mounts.data(), mounts.size()), 0);
    return std::string(user.data()) + mounts.data();
  };
  const std::string before = state();
  (void)gather_evidence("", "");
  EXPECT_EQ(state(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD) << "a trial's process was left";
  for (const CgroupController& controller : look_at_cgroups()) {
    if (controller.folder.empty()) continue;
    const std::string trial = controller.folder + "/belljar-trial-" + std::to_string(getpid());
    EXPECT_NE(access(trial.c_str(), F_OK), 0);
  }
}

}  // namespace
}  // namespace belljar::linux
