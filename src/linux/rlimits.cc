#include "linux/rlimits.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace belljar::linux {
namespace {

static_assert(RLIM_INFINITY == UINT64_MAX);

// prlimit64 directly: libc's prototypes take an enum in C++, and its wrapper is this very call.
int call_prlimit(int resource, const rlimit* set, rlimit* get) {
  return syscall(SYS_prlimit64, 0, resource, set, get) == 0 ? 0 : errno;
}

}  // namespace

int set_limits(std::span<const ResourceLimit> limits) {
  for (const ResourceLimit& limit : limits) {
    const rlimit wanted{limit.value, limit.value};
    if (const int error = call_prlimit(limit.resource, &wanted, nullptr); error != 0) return error;
  }
  return limits_are(limits) ? 0 : EIO;
}

bool limits_are(std::span<const ResourceLimit> limits) {
  for (const ResourceLimit& limit : limits) {
    rlimit now{};
    if (call_prlimit(limit.resource, nullptr, &now) != 0) return false;
    if (now.rlim_cur != limit.value || now.rlim_max != limit.value) return false;
  }
  return true;
}

}  // namespace belljar::linux
