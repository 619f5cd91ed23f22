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

template <const auto& groups>
constexpr auto make_program() {
  constexpr size_t kSize = compile_filter(groups, rules::kOptions).size();
  static_assert(kSize <= BPF_MAXINSNS);
  const auto code = compile_filter(groups, rules::kOptions);
  std::array<sock_filter, kSize> out{};
  for (size_t i = 0; i < kSize; ++i) out[i] = code[i];
  return out;
}

constinit const auto kProgram = make_program<rules::kGroups>();
constinit const auto kNestedProgram = make_program<rules::kNestedGroups>();

}  // namespace

std::span<const sock_filter> agent_filter() {
  return kProgram;
}

std::span<const sock_filter> nested_filter() {
  return kNestedProgram;
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
