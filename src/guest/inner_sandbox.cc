#include "guest/inner_sandbox.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/reap.h"
#include "linux/clone.h"

namespace belljar::guest {
namespace {

// In the child, which shares init's memory until it ends.
int mount_proc(void* error) {
  const bool good = ::syscall(SYS_mount, nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                    ::syscall(SYS_mount, "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
  *static_cast<int*>(error) = good ? 0 : errno;
  return 0;
}

}  // namespace

int try_inner_sandbox() {
  int error = EPROTO;
  alignas(16) std::array<char, 16384> stack;
  const int64_t pid = linux::clone_sharing_memory(CLONE_VFORK | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID, nullptr, -1,
                                                  stack.data(), stack.size(), &mount_proc, &error);
  if (pid < 0) return static_cast<int>(-pid);
  (void)base::reap(static_cast<pid_t>(pid));
  return error;
}

}  // namespace belljar::guest
