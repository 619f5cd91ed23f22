#include "session/limits.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <utility>

#include "base/pack.h"
#include "base/path.h"
#include "linux/systemd_scope.h"

namespace belljar::session {
namespace {

linux::CgroupLimits limits_of(const plan::Plan& plan) {
  return {.memory_bytes = plan.limits.memory_bytes, .cpu_percent = plan.limits.cpu_percent, .pids = plan.limits.pids};
}

uint64_t microseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

void settle_scratch(Settlement& settlement, const plan::Plan& plan, int scratch, std::span<const base::Fd> more) {
  bool full = false;
  bool without_inodes = false;
  uint64_t bytes = 0;
  uint64_t files = 0;
  const auto look = [&](int each) {
    struct statvfs now{};
    if (each < 0 || ::fstatvfs(each, &now) != 0) return false;
    bytes += uint64_t{now.f_blocks - now.f_bfree} * now.f_frsize;
    files += now.f_files - now.f_ffree;
    full = full || now.f_bfree == 0;
    without_inodes = without_inodes || now.f_ffree == 0;
    return true;
  };
  if (!look(scratch)) return;
  for (const base::Fd& each : more) (void)look(each.get());
  settlement.usage.scratch_bytes = bytes;
  settlement.usage.scratch_files = files;
  if (full) settlement.limits_hit.push_back({LimitHit::Kind::kNoSpace, plan.limits.scratch_bytes, 0});
  if (without_inodes) settlement.limits_hit.push_back({LimitHit::Kind::kNoInodes, plan.limits.scratch_files, 0});
}

}  // namespace

void ask_systemd_where_needed(const policy::Policy& policy, bool only_look, Launcher& launcher) {
  const std::array named{policy.limits.memory_bytes.has_value(), policy.limits.cpu_percent.has_value(),
                         policy.limits.pids.has_value()};
  bool wanted = false;
  for (size_t i = 0; i < named.size(); ++i) {
    wanted = wanted || (named[i] && !launcher.groups[i].usable() && launcher.groups[i].version == 2);
  }
  if (!wanted || ::access("/run/systemd/system", F_OK) != 0) return;
  const auto value_of = [&](const char* name) {
    const auto found = launcher.environment.find(name);
    return found == launcher.environment.end() ? std::string() : found->second;
  };
  const std::string bus =
      linux::systemd_bus(::geteuid() == 0, value_of("DBUS_SESSION_BUS_ADDRESS"), value_of("XDG_RUNTIME_DIR"));
  if (bus.empty() || ::access(bus.c_str(), W_OK) != 0) return;
  if (!only_look) {
    constexpr auto kPatience = std::chrono::seconds(5);
    const std::string name = linux::kCgroupPrefix + std::to_string(::getpid()) + "-" +
                             std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
    const auto entered = linux::enter_delegated_scope(bus, name, base::Deadline::after(kPatience));
    if (entered) {
      launcher.groups = linux::find_cgroup_grounds(name + ".scope");
      return;
    }
    for (linux::CgroupGround& ground : launcher.groups) ground.fault += "; " + entered.error().message();
    return;
  }
  for (linux::CgroupGround& ground : launcher.groups) {
    if (!ground.usable() && ground.version == 2) ground.kind = linux::CgroupGround::Kind::kSystemd;
  }
}

linux::Cgroup begin_group(const std::string& session, const linux::CgroupGrounds& grounds) {
  linux::CgroupWanted wanted{};
  bool v2 = false;
  for (size_t i = 0; i < grounds.size(); ++i) {
    wanted[i] = grounds[i].usable();
    v2 = v2 || (wanted[i] && grounds[i].version == 2);
  }
  if (!v2) return {};
  auto group = linux::Cgroup::make(linux::kCgroupPrefix + session, wanted, grounds);
  return group ? std::move(*group) : linux::Cgroup();
}

base::Result<linux::Cgroup> finish_group(linux::Cgroup begun, const plan::Plan& plan, const std::string& session,
                                         const linux::CgroupGrounds& grounds) {
  const linux::CgroupLimits limits = limits_of(plan);
  const linux::CgroupWanted wanted = limits.named();
  if (std::ranges::none_of(wanted, std::identity())) return linux::Cgroup();
  if (begun.empty()) {
    BELLJAR_ASSIGN(begun, linux::Cgroup::make(linux::kCgroupPrefix + session, wanted, grounds));
  }
  BELLJAR_TRY(begun.limit(limits));
  return begun;
}

workspace::Work removal_of(const linux::Cgroup& group) {
  workspace::Work out;
  out.name = kGroupRemoval;
  for (const std::string& path : group.paths()) base::pack_text(out.record, path);
  out.always = true;
  out.run = [record = out.record](int) { return remove_recorded_group(record); };
  return out;
}

base::Result<workspace::Settled> remove_recorded_group(std::string_view record) {
  base::Unpacker in(record);
  std::vector<std::string> paths;
  while (in.good() && !in.at_end()) {
    std::string path = in.text(PATH_MAX);
    if (!base::name_of(path).starts_with(linux::kCgroupPrefix)) {
      return base::refuse("remove the group", path, "it is not one of ours, refusing");
    }
    paths.push_back(std::move(path));
  }
  workspace::Settled out;
  for (std::string& path : linux::remove_groups(paths)) out.add_unreleased("cgroup " + std::move(path));
  return out;
}

void settle_limits(Settlement& settlement, const plan::Plan& plan, const linux::Cgroup& group, const rusage& used,
                   int scratch, std::span<const base::Fd> more_scratch) {
  Usage& usage = settlement.usage;
  usage.cpu_us = microseconds(used.ru_utime) + microseconds(used.ru_stime);
  usage.largest_process_bytes = static_cast<uint64_t>(used.ru_maxrss) * 1024;
  const linux::CgroupCounters counters = group.counters();
  usage.peak_memory_bytes = counters.memory_peak;
  // The group's clock counts those too that ended with init.
  if (counters.cpu_us) usage.cpu_us = *counters.cpu_us;
  const auto hit = [&](LimitHit::Kind kind, std::optional<uint64_t> limit, std::optional<uint64_t> count) {
    if (count.value_or(0) != 0) settlement.limits_hit.push_back({kind, limit.value_or(0), *count});
  };
  hit(LimitHit::Kind::kOutOfMemory, plan.limits.memory_bytes, counters.memory_kills);
  hit(LimitHit::Kind::kTooManyPids, plan.limits.pids, counters.pids_refused);
  settle_scratch(settlement, plan, scratch, more_scratch);
  if (settlement.reason == EndReason::kDeadline) {
    settlement.limits_hit.push_back({LimitHit::Kind::kDeadline, plan.limits.wall_seconds.value_or(0), 1});
  }
}

}  // namespace belljar::session
