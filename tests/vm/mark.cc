// What the scenes of vm_test need and busybox has not. Static.
//   mark as UID COMMAND...: becomes that user, groups dropped.
//   mark alone UID GROUP COMMAND...: the same, from inside a cgroup.
//   mark delegated GROUP: sets the attribute that systemd sets on what it delegates (systemd 251).
#include <fcntl.h>
#include <grp.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

int fail(const char* what) {
  std::perror(what);
  return 111;
}

int run_as(uid_t uid, char** command) {
  if (uid != 0 && (::setgroups(0, nullptr) != 0 || ::setgid(uid) != 0 || ::setuid(uid) != 0)) return fail("become");
  ::execvp(command[0], command);
  return fail(command[0]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc > 2 ? argv[1] : "";
  if (verb == "delegated") return ::setxattr(argv[2], "user.delegate", "1", 1, 0) == 0 ? 0 : fail(argv[2]);
  if (verb == "as" && argc > 3) return run_as(static_cast<uid_t>(std::atoi(argv[2])), argv + 3);
  if (verb == "alone" && argc > 4) {
    const int fd = ::open((std::string(argv[3]) + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || ::write(fd, "0", 1) != 1) return fail(argv[3]);
    return run_as(static_cast<uid_t>(std::atoi(argv[2])), argv + 4);
  }
  return fail("usage");
}
