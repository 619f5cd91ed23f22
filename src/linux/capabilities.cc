#include "linux/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace belljar::linux {
namespace {

// The sets are two 32-bit words (capget(2), _LINUX_CAPABILITY_VERSION_3), so no number reaches 64.
constexpr unsigned long kNumbers = 64;

}  // namespace

int drop_capabilities() {
  for (unsigned long number = 0; number < kNumbers; ++number) {
    const int held = prctl(PR_CAPBSET_READ, number, 0, 0, 0);
    if (held < 0) {
      if (errno == EINVAL && number > 0) break;  // past the kernel's last capability
      return errno;
    }
    if (held == 1 && prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0) return errno;
  }
  return drop_held_capabilities();
}

int drop_held_capabilities() {
  // EINVAL: a kernel before 4.3, which has no ambient set to clear.
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) return errno;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capset, &header, none) == 0 ? 0 : errno;
}

int read_capabilities(CapabilitySets& out) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, words) != 0) return errno;
  out = {};
  for (unsigned word = 0; word < _LINUX_CAPABILITY_U32S_3; ++word) {
    const unsigned shift = 32U * word;
    out.effective |= uint64_t{words[word].effective} << shift;
    out.permitted |= uint64_t{words[word].permitted} << shift;
    out.inheritable |= uint64_t{words[word].inheritable} << shift;
  }
  for (unsigned long number = 0; number < kNumbers; ++number) {
    const int bounding = prctl(PR_CAPBSET_READ, number, 0, 0, 0);
    if (bounding < 0) {
      if (errno == EINVAL && number > 0) break;
      return errno;
    }
    const int ambient = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, number, 0, 0);
    if (ambient < 0 && errno != EINVAL) return errno;
    if (bounding == 1) out.bounding |= uint64_t{1} << number;
    if (ambient == 1) out.ambient |= uint64_t{1} << number;
  }
  return 0;
}

}  // namespace belljar::linux
