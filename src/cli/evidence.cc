#include "cli/evidence.h"

namespace belljar::cli {

std::string evidence_text(const guest::ProbeRecord& record) {
  std::string out = "The guest checked itself from the inside, before any command:\n";
  for (uint32_t i = 1; i < static_cast<uint32_t>(guest::Check::kCount); ++i) {
    const bool passed = (record.passed & (uint64_t{1} << i)) != 0;
    out += std::string(passed ? "  ok      " : "  FAILED  ") + guest::check_name(static_cast<guest::Check>(i)) + "\n";
  }
  const auto line = [&](const char* name, uint32_t value) {
    out += std::string("  ") + name + ": " + std::to_string(value) + "\n";
  };
  line("uid", record.uid);
  line("gid", record.gid);
  line("supplementary groups", record.groups);
  line("mounts", record.mounts);
  line("landlock ABI", record.landlock_abi);
  line("system-call filters", record.seccomp_filters);
  return out;
}

}  // namespace belljar::cli
