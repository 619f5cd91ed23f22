#include "linux/launcher_filter.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "linux/launcher_rules.h"

namespace belljar::linux {
namespace {

constexpr size_t kProgramSize = compile_filter(launcher_rules::kGroups, launcher_rules::kOptions).size();
static_assert(kProgramSize <= BPF_MAXINSNS);

constexpr std::array<sock_filter, kProgramSize> make_program() {
  const auto code = compile_filter(launcher_rules::kGroups, launcher_rules::kOptions);
  std::array<sock_filter, kProgramSize> out{};
  for (size_t i = 0; i < kProgramSize; ++i) out[i] = code[i];
  return out;
}

constinit const std::array<sock_filter, kProgramSize> kLauncherProgram = make_program();

}  // namespace

std::span<const sock_filter> launcher_filter() {
  return kLauncherProgram;
}

int install_filter_on_all_threads(std::span<const sock_filter> program) {
  if (program.empty() || program.size() > BPF_MAXINSNS) return EINVAL;
  const sock_fprog prog{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  const long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog);
  if (result < 0) return errno;
  return result == 0 ? 0 : ESRCH;  // the id of the thread that has filters of its own
}

}  // namespace belljar::linux
