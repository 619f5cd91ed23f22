// The group of one guest, in one hierarchy of v2 or in up to three of v1, and gone with the object.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "linux/cgroup_ground.h"

namespace belljar::linux {

// What the group has come to. A counter that the kernel does not keep here has no value.
struct CgroupCounters {
  std::optional<uint64_t> memory_peak;   // bytes; v2 since Linux 5.19
  std::optional<uint64_t> memory_kills;  // processes killed for want of memory (v1 since 4.13)
  std::optional<uint64_t> pids_refused;  // forks refused by pids.max
  std::optional<uint64_t> throttled;     // periods in which the cpu quota was used up
  std::optional<uint64_t> cpu_us;        // v2 only: in v1 another controller counts
};

struct CgroupLimits {
  std::optional<uint64_t> memory_bytes;  // swap comes off: with it, memory.max would only slow the guest down
  std::optional<uint64_t> cpu_percent;   // 100 is one core
  std::optional<uint64_t> pids;

  [[nodiscard]] std::array<bool, kControllers.size()> named() const {
    return {memory_bytes.has_value(), cpu_percent.has_value(), pids.has_value()};
  }
};

using CgroupWanted = std::array<bool, kControllers.size()>;

class Cgroup {
 public:
  Cgroup() = default;
  Cgroup(Cgroup&&) noexcept = default;
  Cgroup& operator=(Cgroup&& other) noexcept;
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  ~Cgroup();  // as remove()

  // Makes the group `name` with the controllers that are `wanted`, by the order of kControllers, where `grounds` says:
  // usable ones, none kSystemd. Groups that killed launchers have left there, ours by name, empty and held by nobody,
  // are removed first. An error leaves nothing.
  [[nodiscard]] static base::Result<Cgroup> make(const std::string& name, const CgroupWanted& wanted,
                                                 const CgroupGrounds& grounds);

  // Sets limits, of controllers that make() was told to want; others stay unlimited.
  [[nodiscard]] base::Status limit(const CgroupLimits& limits);

  // The v2 folder for CLONE_INTO_CGROUP (Linux 5.7), or -1.
  [[nodiscard]] int folder_for_clone() const;
  // Descriptors into which a new process of one thread writes "0" to enter: one for each group of v1. Entering by
  // `tasks` spares the wait of some milliseconds for every processor that `cgroup.procs` costs (Linux 5.6).
  [[nodiscard]] std::vector<int> entries() const;

  // Moves a process into it, with all its threads.
  [[nodiscard]] base::Status enter(pid_t pid) const;

  // Opens what counters() reads, for a process that cannot open any later.
  void open_counters();
  [[nodiscard]] CgroupCounters counters() const;
  // Ends every process in it (cgroup.kill, Linux 5.14); false where the kernel cannot.
  bool kill() const;
  // Removes the group, trying again while it is busy, for at most `patience`. What could not be removed is returned,
  // and the object forgets it.
  std::vector<std::string> remove(std::chrono::milliseconds patience = std::chrono::seconds(2));

  // What remove() would remove, for somebody else to do it by remove_groups() at the end.
  [[nodiscard]] std::vector<std::string> paths() const;
  // Forgets the group; somebody else removes it.
  void leave() { groups_.clear(); }

  [[nodiscard]] bool empty() const { return groups_.empty(); }

 private:
  struct Group {
    int version = 0;
    std::string path;
    base::Fd folder;  // locked (flock(2)) as long as a launcher holds it
    base::Fd entry;   // v1: its `tasks`
    CgroupWanted has{};
    std::vector<std::pair<std::string, base::Fd>> counters{};  // by name

    [[nodiscard]] std::optional<std::string> read(const char* file) const;
    [[nodiscard]] std::optional<uint64_t> number(const char* file) const;
    [[nodiscard]] std::optional<uint64_t> keyed(const char* file, std::string_view key) const;
  };
  [[nodiscard]] const Group* with(Controller controller) const;
  base::Status add(const std::string& name, const CgroupGround& ground, Controller controller);

  std::vector<Group> groups_;
};

// Removes the groups, trying again while they are busy, for at most `patience`. Returns those that are still there.
[[nodiscard]] std::vector<std::string> remove_groups(std::span<const std::string> paths,
                                                     std::chrono::milliseconds patience = std::chrono::seconds(2));

// What the names of all groups of ours start with.
inline constexpr const char* kCgroupPrefix = "belljar-";

}  // namespace belljar::linux
