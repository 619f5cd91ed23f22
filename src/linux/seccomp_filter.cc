#include "linux/seccomp_filter.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "linux/seccomp_rules.h"

namespace belljar::linux {
namespace {

constexpr size_t kProgramSize = compile_filter(rules::kGroups, rules::kOptions).size();
static_assert(kProgramSize <= BPF_MAXINSNS);

constexpr std::array<sock_filter, kProgramSize> make_program() {
  const auto code = compile_filter(rules::kGroups, rules::kOptions);
  std::array<sock_filter, kProgramSize> out{};
  for (size_t i = 0; i < kProgramSize; ++i) out[i] = code[i];
  return out;
}

constinit const std::array<sock_filter, kProgramSize> kProgram = make_program();

}  // namespace

std::span<const sock_filter> agent_filter() {
  return kProgram;
}

int install_filter(std::span<const sock_filter> program) {
  if (program.empty() || program.size() > BPF_MAXINSNS) return EINVAL;
  // The kernel only reads the program (seccomp_prepare_user_filter copies it); the field lacks a const for history.
  const sock_fprog prog{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == 0 ? 0 : errno;
}

int seccomp_mode() {
  const int mode = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
  return mode >= 0 ? mode : -errno;
}

}  // namespace belljar::linux
