// The floor that bench_launch shows beside the launchers: seven namespaces in one vfork-style clone, a tmpfs root with
// four binds and a proc, loopback up, pivot, no_new_privs, execution. No init, no check, no filter, no way out, no
// plan. usage: bare-launcher PROGRAM [ARGUMENT]... (root; binds the current folder to /work)
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

namespace {

struct Launch {
  char** argv = nullptr;
  std::array<char, 4096> folder{};
};

int new_mount(const char* type) {
  const int context = ::fsopen(type, FSOPEN_CLOEXEC);
  ::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0);
  const int mounted = ::fsmount(context, FSMOUNT_CLOEXEC, 0);
  ::close(context);
  return mounted;
}

bool bind(const char* source, int root, const char* target, uint64_t attributes) {
  const int tree = ::open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
  mount_attr change{};
  change.attr_set = MOUNT_ATTR_NOSUID | attributes;
  const bool good = ::mkdirat(root, target, 0755) == 0 &&
                    ::mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &change, sizeof change) == 0 &&
                    ::move_mount(tree, "", root, target, MOVE_MOUNT_F_EMPTY_PATH) == 0;
  ::close(tree);
  return good;
}

bool raise_loopback() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP;
  const bool good = ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  ::close(fd);
  return good;
}

int child(void* argument) {
  auto& launch = *static_cast<Launch*>(argument);
  ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  const int root = new_mount("tmpfs");
  if (::move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0) return 125;
  for (const char* name : {"bin", "lib", "lib64"}) {
    std::array<char, 16> target{"usr/"};
    std::strcat(target.data(), name);
    if (::symlinkat(target.data(), root, name) != 0) return 125;
  }
  const int proc = new_mount("proc");
  const bool good =
      bind("/usr", root, "usr", MOUNT_ATTR_RDONLY) && bind("/etc", root, "etc", MOUNT_ATTR_RDONLY) &&
      bind("/dev", root, "dev", 0) && bind(launch.folder.data(), root, "work", 0) &&
      ::mkdirat(root, "proc", 0755) == 0 && ::move_mount(proc, "", root, "proc", MOVE_MOUNT_F_EMPTY_PATH) == 0 &&
      raise_loopback() && ::fchdir(root) == 0 && ::syscall(SYS_pivot_root, ".", ".") == 0 &&
      ::umount2(".", MNT_DETACH) == 0 && ::chdir("/work") == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  if (good) ::execve(launch.argv[0], launch.argv, environ);
  return 125;
}

}  // namespace

int main(int argc, char** argv) {
  static Launch launch;
  static std::array<char, 65536> stack;
  launch.argv = argv + 1;
  if (argc < 2 || ::getcwd(launch.folder.data(), launch.folder.size()) == nullptr) return 125;
  const int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                    CLONE_NEWUTS | CLONE_NEWCGROUP;
  const int pid = ::clone(child, stack.data() + stack.size(), flags, &launch);
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) return 125;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
