// The `belljar` program: wiring only.
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "base/path.h"
#include "cli/main.h"

namespace {

// A closed 0, 1 or 2 would be taken by the next descriptor opened, and then written to as if it were the output. Notes
// in `closed` which were.
bool open_standard_descriptors(uint32_t& closed) {
  for (;;) {
    const int fd = ::open("/dev/null", O_RDWR);  // NOLINT(android-cloexec-open): it stands for 0, 1 or 2
    if (fd < 0) return false;
    if (fd > STDERR_FILENO) {
      ::close(fd);
      return true;
    }
    closed |= 1U << static_cast<unsigned>(fd);
  }
}

}  // namespace

#ifdef BELLJAR_SANITIZED
// LeakSanitizer's search at the end clones and traces, which a sealed launcher cannot. The unit tests look for leaks.
extern "C" const char* __asan_default_options();   // NOLINT(bugprone-reserved-identifier): the sanitizer's name for it
extern "C" const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "detect_leaks=0";
}
#endif

int main(int argc, char** argv) {
  belljar::cli::Context context;
  if (!open_standard_descriptors(context.closed)) return belljar::cli::kFailed;
  // The proxy's thread shares the one heap: an arena of its own would be 128 MiB mapped and unmapped at every launch.
  ::mallopt(M_ARENA_MAX, 1);
  // A launch takes some 600 kB: at once, and not given back and taken again at each larger text that is read.
  ::mallopt(M_TOP_PAD, 1 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 4 << 20);
  const auto self = belljar::base::real_path("/proc/self/exe");
  if (!self) return belljar::cli::report(context, self.error());
  context.guest_path = belljar::base::parent_of(*self) + "/belljar-guest";
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return belljar::cli::run_main(context, arguments);
}
