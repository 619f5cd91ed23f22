// What the scenes of vm_test need and busybox has not. Static.
//   mark as UID COMMAND...: becomes that user, groups dropped.
//   mark alone UID GROUP COMMAND...: the same, from inside a cgroup.
//   mark delegated GROUP: sets the attribute that systemd sets on what it delegates (systemd 251).
//   mark quota DEVICE UID KIB: so much of the file system on DEVICE, which counts, is that user's (quotactl(2)).
//   mark awake: milliseconds since the start in which the machine did not sleep.
#include <fcntl.h>
#include <grp.h>
#include <sys/quota.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
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

int set_quota(const char* device, int uid, uint64_t kib) {
  dqblk limit{};
  limit.dqb_bhardlimit = kib;
  limit.dqb_valid = QIF_BLIMITS;
  return ::quotactl(QCMD(Q_SETQUOTA, USRQUOTA), device, uid, reinterpret_cast<caddr_t>(&limit)) == 0 ? 0 : fail(device);
}

int say_awake() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  std::printf("%lld\n", static_cast<long long>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "awake") return say_awake();
  if (argc < 3) return fail("usage");
  if (verb == "quota" && argc > 4) return set_quota(argv[2], std::atoi(argv[3]), std::strtoull(argv[4], nullptr, 10));
  if (verb == "delegated") return ::setxattr(argv[2], "user.delegate", "1", 1, 0) == 0 ? 0 : fail(argv[2]);
  if (verb == "as" && argc > 3) return run_as(static_cast<uid_t>(std::atoi(argv[2])), argv + 3);
  if (verb == "alone" && argc > 4) {
    const int fd = ::open((std::string(argv[3]) + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || ::write(fd, "0", 1) != 1) return fail(argv[3]);
    return run_as(static_cast<uid_t>(std::atoi(argv[2])), argv + 4);
  }
  return fail("usage");
}
