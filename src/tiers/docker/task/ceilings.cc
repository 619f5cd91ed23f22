#include "tiers/docker/task/ceilings.h"

#include <array>

#include "base/pack.h"
#include "policy/values.h"

namespace belljar::tiers::docker::task {
namespace {

constexpr uint64_t kMegabyte = uint64_t{1} << 20U;
constexpr uint64_t kTerabyte = uint64_t{1} << 40U;
constexpr uint64_t kMostFiles = 100'000'000;

// The least is what belljar-guest and a shell need; the most keeps sums within 64 bits. An engine refuses more than its
// host has.
constexpr std::array<Bound, 11> kBounds = {{
    {&Ceilings::memory_bytes, "--memory", "memory, swap none, tmpfs counted (standard: 4GiB)", Unit::kBytes,
     32 * kMegabyte, kTerabyte},
    {&Ceilings::cpu_percent, "--cpu", "processor time; 200% is two cores (standard: that, or all there are)",
     Unit::kPercent, 0, 100'000},
    {&Ceilings::pids, "--pids", "processes and threads (standard: 512)", Unit::kCount, 16, 4'000'000},
    {&Ceilings::open_files, "--open-files", "open files of a process (standard: 16384)", Unit::kCount, 64, 1 << 20},
    {&Ceilings::home_bytes, "--home-size", "bytes in the home (standard: 256MiB)", Unit::kBytes, kMegabyte, kTerabyte},
    {&Ceilings::home_files, "--home-files", "files in the home (standard: 20000)", Unit::kCount, 100, kMostFiles},
    {&Ceilings::temporary_bytes, "--tmp-size", "bytes in /tmp (standard: 1GiB)", Unit::kBytes, kMegabyte, kTerabyte},
    {&Ceilings::temporary_files, "--tmp-files", "files in /tmp (standard: 200000)", Unit::kCount, 100, kMostFiles},
    {&Ceilings::state_bytes, "--state-size", "bytes of the agent's state (standard: 256MiB)", Unit::kBytes, kMegabyte,
     kTerabyte},
    {&Ceilings::state_files, "--state-files", "files of the agent's state (standard: 20000)", Unit::kCount, 100,
     kMostFiles},
    {&Ceilings::shared_bytes, "--shm-size", "shared memory (standard: 64MiB)", Unit::kBytes, kMegabyte, kTerabyte},
}};
static_assert(sizeof(Ceilings) == kBounds.size() * sizeof(uint64_t), "a ceiling has no bounds");

std::string text_of(Unit unit, uint64_t value) {
  if (unit == Unit::kBytes) return policy::size_text(value);
  return std::to_string(value) + (unit == Unit::kPercent ? "%" : "");
}

}  // namespace

std::span<const Bound> bounds() {
  return kBounds;
}

base::Status check(const Ceilings& ceilings) {
  for (const Bound& one : kBounds) {
    const uint64_t value = ceilings.*one.field;
    if (value >= one.least && value <= one.most) continue;
    return base::refuse("capture the request", one.name, text_of(one.unit, value) + " is out of bounds, refusing",
                        text_of(one.unit, one.least) + " to " + text_of(one.unit, one.most));
  }
  return {};
}

void pack(std::string& out, const Ceilings& ceilings) {
  for (const Bound& one : kBounds) base::pack_number(out, ceilings.*one.field);
}

}  // namespace belljar::tiers::docker::task
