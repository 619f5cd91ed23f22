// On the real thing: what this host lets the caller make, and a refusal for what it does not.
#include "linux/cgroup.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include "linux/clone.h"

namespace belljar::linux {
namespace {

using Kind = CgroupGround::Kind;

std::string name_of_test(const char* what) {
  return std::string(kCgroupPrefix) + "test-" + what + "-" + std::to_string(getpid());
}

// Runs `work` in a process of the group and returns its wait status.
int run_inside(const Cgroup& group, const std::function<int()>& work) {
  pid_t pid = -1;
  if (group.folder_for_clone() >= 0) {
    // As the launcher does it, then a process of its own memory: fork(2) stays in the group.
    alignas(16) static std::array<char, 1U << 18U> stack;
    const auto entry = [](void* argument) {
      const pid_t inner = fork();
      if (inner == 0) _exit((*static_cast<const std::function<int()>*>(argument))());
      int status = 0;
      waitpid(inner, &status, 0);
      return WIFSIGNALED(status) ? 100 + WTERMSIG(status) : WEXITSTATUS(status);
    };
    pid = static_cast<pid_t>(clone_sharing_memory(CLONE_VFORK, nullptr, group.folder_for_clone(), stack.data(),
                                                  stack.size(), entry, const_cast<std::function<int()>*>(&work)));
  } else {
    pid = fork();
    if (pid == 0) {
      for (const int entry : group.entries()) {
        if (write(entry, "0", 1) != 1) _exit(99);
      }
      const pid_t inner = fork();
      if (inner == 0) _exit(work());
      int status = 0;
      waitpid(inner, &status, 0);
      _exit(WIFSIGNALED(status) ? 100 + WTERMSIG(status) : WEXITSTATUS(status));
    }
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WEXITSTATUS(status);
}

int touch_memory(size_t bytes) {
  auto* at = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (at == MAP_FAILED) return 98;
  for (size_t i = 0; i < bytes; i += 4096) at[i] = 1;
  return 0;
}

int fork_until_refused() {
  for (int i = 0; i < 100; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      pause();
      _exit(0);
    }
    if (pid < 0) {
      const int code = errno;
      kill(0, SIGCONT);
      return code == EAGAIN ? 7 : 8;
    }
  }
  return 9;
}

TEST(CgroupGround, SaysWhereOrWhyNotForEach) {
  const CgroupGrounds grounds = find_cgroup_grounds();
  for (size_t i = 0; i < grounds.size(); ++i) {
    EXPECT_EQ(grounds[i].usable(), grounds[i].fault.empty()) << name_of(kControllers[i]);
    EXPECT_TRUE(!grounds[i].usable() || std::filesystem::is_directory(grounds[i].folder));
  }
}

// What is said to be usable can be used, and what is not is refused with its reason.
TEST(Cgroup, IsMadeWhereThereIsGroundAndRefusedElsewhere) {
  const CgroupGrounds grounds = find_cgroup_grounds();
  for (size_t i = 0; i < grounds.size(); ++i) {
    if (grounds[i].kind == Kind::kSystemd) continue;
    CgroupWanted wanted{};
    wanted[i] = true;
    const std::string path = grounds[i].folder + "/" + name_of_test("made");
    {
      auto group = Cgroup::make(name_of_test("made"), wanted, grounds);
      ASSERT_EQ(group.has_value(), grounds[i].usable()) << name_of(kControllers[i]);
      if (!group) {
        EXPECT_THAT(group.error().message(), testing::HasSubstr(grounds[i].fault));
        continue;
      }
      EXPECT_TRUE(std::filesystem::is_directory(path));
    }
    EXPECT_FALSE(std::filesystem::exists(path)) << "left behind";
  }
}

TEST(Cgroup, CountsWhatItHeldBack) {
  const CgroupGrounds grounds = find_cgroup_grounds();
  const CgroupLimits limits{.memory_bytes = uint64_t{32} << 20U, .cpu_percent = 50, .pids = 5};
  CgroupWanted wanted{};
  for (size_t i = 0; i < grounds.size(); ++i) {
    wanted[i] = grounds[i].usable() && grounds[i].kind != Kind::kSystemd;
  }
  auto group = Cgroup::make(name_of_test("counts"), wanted, grounds);
  ASSERT_TRUE(group) << group.error().message();
  const auto limited = group->limit(limits);
  ASSERT_TRUE(limited) << limited.error().message();
  EXPECT_EQ(group->counters().memory_kills.value_or(0), 0U);
  EXPECT_EQ(group->counters().pids_refused.value_or(0), 0U);
  if (wanted[0]) {
    EXPECT_EQ(run_inside(*group, [] { return touch_memory(size_t{16} << 20U); }), 0);
    EXPECT_EQ(group->counters().memory_kills, 0U);
    EXPECT_EQ(run_inside(*group, [] { return touch_memory(size_t{64} << 20U); }), 100 + SIGKILL);
    EXPECT_EQ(group->counters().memory_kills, 1U);
    EXPECT_GE(group->counters().memory_peak.value_or(UINT64_MAX), uint64_t{16} << 20U);
  }
  if (wanted[2]) {
    EXPECT_EQ(run_inside(*group,
                         [] {
                           setpgid(0, 0);
                           const int found = fork_until_refused();
                           signal(SIGTERM, SIG_IGN);
                           kill(0, SIGTERM);
                           return found;
                         }),
              7);
    EXPECT_GE(group->counters().pids_refused.value_or(0), 1U);
  }
  EXPECT_THAT(group->remove(), testing::IsEmpty());
}

// A launcher that was killed leaves an empty group. The next one takes it away, but none that somebody holds.
TEST(Cgroup, ClearsUpAfterKilledLaunchersOnly) {
  const CgroupGrounds grounds = find_cgroup_grounds();
  for (size_t i = 0; i < grounds.size(); ++i) {
    if (!grounds[i].usable() || grounds[i].kind == Kind::kSystemd) continue;
    CgroupWanted wanted{};
    wanted[i] = true;
    auto held = Cgroup::make(name_of_test("held"), wanted, grounds);
    ASSERT_TRUE(held);
    const std::string left = grounds[i].folder + "/" + name_of_test("left");
    ASSERT_EQ(mkdir(left.c_str(), 0755), 0);
    const std::string foreign = grounds[i].folder + "/not-" + name_of_test("left");
    ASSERT_EQ(mkdir(foreign.c_str(), 0755), 0);
    {
      const auto next = Cgroup::make(name_of_test("next"), wanted, grounds);
      ASSERT_TRUE(next);
    }
    EXPECT_FALSE(std::filesystem::exists(left));
    EXPECT_TRUE(std::filesystem::exists(foreign));
    EXPECT_TRUE(std::filesystem::exists(grounds[i].folder + "/" + name_of_test("held")));
    EXPECT_EQ(rmdir(foreign.c_str()), 0);
  }
}

// One that stays busy is not waited for without end, and is named.
TEST(Cgroup, NamesWhatItCouldNotRemove) {
  const CgroupGrounds grounds = find_cgroup_grounds();
  for (size_t i = 0; i < grounds.size(); ++i) {
    if (!grounds[i].usable() || grounds[i].kind == Kind::kSystemd) continue;
    CgroupWanted wanted{};
    wanted[i] = true;
    auto group = Cgroup::make(name_of_test("busy"), wanted, grounds);
    ASSERT_TRUE(group);
    const std::string path = grounds[i].folder + "/" + name_of_test("busy");
    const std::string below = path + "/below";
    ASSERT_EQ(mkdir(below.c_str(), 0755), 0);
    EXPECT_THAT(group->remove(std::chrono::milliseconds(20)), testing::ElementsAre(path));
    EXPECT_EQ(rmdir(below.c_str()), 0);
    EXPECT_EQ(rmdir(path.c_str()), 0);
  }
}

}  // namespace
}  // namespace belljar::linux
