// leave-chroot COMMAND...: runs COMMAND with the same files and no chroot, so that tests may make user namespaces
// there.
#include <unistd.h>

#include <cstdio>

#include "linux/chroot.h"

int main(int argc, char** argv) {
  if (argc < 2) return 125;
  if (const auto left = belljar::linux::leave_chroot(); !left) {
    std::fprintf(stderr, "leave-chroot: %s\n", left.error().message().c_str());
    return 125;
  }
  ::execvp(argv[1], argv + 1);
  std::perror(argv[1]);
  return 127;
}
