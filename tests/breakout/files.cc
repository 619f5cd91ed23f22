// Files of the host: what a secret outside says, and what could be left outside.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "breakout/hostile.h"

namespace hostile {
namespace {

// Reads the host's secret by way of `root`, which may be another name of the host's root.
Outcome read_secret(const std::string& root) {
  const std::string secret = fact("secret");
  if (secret.empty()) return through("the test did not say where the secret is");
  const std::string found = read_start((root + secret).c_str());
  if (found.find("secret-of-the-host") != std::string::npos) return through("read " + root + secret);
  return held(strerrorname_np(errno));
}

Outcome must_not_open(const char* path, int flags = O_RDONLY) {
  const int fd = ::open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
  return refused(fd);
}

Outcome must_not_write(const char* path, std::string_view text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return held(strerrorname_np(errno));
  return refused(::write(fd, text.data(), text.size()));
}

// Every process of the guest, by every way that its folder in proc offers.
Outcome through_processes(const char* way) {
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return held("no /proc");
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    const Outcome each = read_secret(std::string("/proc/") + entry->d_name + way);
    if (each.through) return each;
  }
  ::closedir(folder);
  return held("no process leads there");
}

// The inode of a file system's root is 2 on ext4; handles need no path (open_by_handle_at(2)).
Outcome by_handle() {
  struct Handle {
    unsigned bytes = 8;
    int type = 1;
    std::array<unsigned, 2> inode{2, 0};
  } handle;
  const int here = ::open("..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return refused(::syscall(SYS_open_by_handle_at, here, &handle, O_RDONLY));
}

const Attempt kAttempts[] = {
    {"secret-by-its-path", [] { return read_secret(""); }},
    {"secret-by-climbing", [] { return read_secret("../../../../../../../../../../../../.."); }},
    {"secret-by-climbing-from-work", [] { return read_secret(fact("work") + "/../../../../.."); }},
    {"secret-by-own-root", [] { return read_secret("/proc/self/root"); }},
    {"secret-by-the-root-of-init", [] { return read_secret("/proc/1/root"); }},
    {"secret-by-the-folder-of-init", [] { return read_secret("/proc/1/cwd/../../../../../.."); }},
    {"secret-by-any-root", [] { return through_processes("/root"); }},
    {"secret-by-any-folder", [] { return through_processes("/cwd/../../../../../../.."); }},
    {"secret-by-any-descriptor",
     [] {
       for (int fd = 0; fd < 64; ++fd) {
         const std::string number = std::to_string(fd);
         for (const char* who : {"self", "1"}) {
           const std::string way = std::string("/proc/") + who + "/fd/" + number + "/../../../../../../../..";
           if (const Outcome each = read_secret(way); each.through) return each;
         }
       }
       return held("no descriptor leads there");
     }},
    {"secret-by-the-program-of-init", [] { return must_not_open("/proc/1/exe"); }},
    {"secret-by-a-link-in-work",
     [] {
       if (::symlink(fact("secret").c_str(), "link") != 0) return held(strerrorname_np(errno));
       return read_start("link").empty() ? held("it leads nowhere") : through("read through the link");
     }},
    {"write-outside-by-a-link-in-work",
     [] {
       // What the host would follow later is its own affair; from here it must not lead out.
       if (::symlink((fact("outside") + "/made-by-guest").c_str(), "link") != 0) return held(strerrorname_np(errno));
       put_file("link", "from the guest");
       return held("the test looks outside");
     }},
    {"write-beside-work",
     [] {
       put_file((fact("work") + "/../made-by-guest").c_str(), "from the guest");
       put_file((fact("outside") + "/made-by-guest").c_str(), "from the guest");
       return held("the test looks outside");
     }},
    {"overwrite-the-secret",
     [] {
       put_file(fact("secret").c_str(), "overwritten");
       return held("the test looks outside");
     }},
    {"move-work-away", [] { return refused(::rename(fact("work").c_str(), (fact("work") + "-moved").c_str())); }},
    {"remove-work", [] { return refused(::rmdir(fact("work").c_str())); }},
    {"root-by-handle", by_handle},
    {"leave-by-chroot",
     [] {
       ::mkdir("jail", 0755);
       return refused(::syscall(SYS_chroot, "jail"));
     }},
    {"home-of-root", [] { return must_not_open("/root/.ssh"); }},
    {"shadow", [] { return read_start("/etc/shadow").empty() ? held("empty") : through("read it"); }},
    {"shadow-of-the-group", [] { return read_start("/etc/gshadow").empty() ? held("empty") : through("read it"); }},
    {"machine-id", [] { return read_start("/etc/machine-id").empty() ? held("empty") : through("read it"); }},
    {"disks", [] { return must_not_open("/dev/disk"); }},
    {"first-disk", [] { return must_not_open("/dev/sda"); }},
    {"virtual-disk", [] { return must_not_open("/dev/vda"); }},
    {"memory-device", [] { return must_not_open("/dev/mem"); }},
    {"port-device", [] { return must_not_open("/dev/port"); }},
    {"kernel-log", [] { return must_not_open("/dev/kmsg"); }},
    {"fuse", [] { return must_not_open("/dev/fuse", O_RDWR); }},
    {"tunnel", [] { return must_not_open("/dev/net/tun", O_RDWR); }},
    {"virtual-machines", [] { return must_not_open("/dev/kvm", O_RDWR); }},
    {"fault-device", [] { return must_not_open("/dev/userfaultfd", O_RDWR); }},
    {"first-console", [] { return must_not_open("/dev/tty1", O_RDWR); }},
    {"console", [] { return must_not_open("/dev/console", O_RDWR); }},
    {"make-a-device-in-dev", [] { return refused(::mknod("/dev/disk0", S_IFBLK | 0666, 0x800)); }},
    {"file-in-dev", [] { return must_not_open("/dev/new", O_WRONLY | O_CREAT); }},
    {"change-a-device", [] { return refused(::chmod("/dev/null", 0600)); }},
    {"change-the-times-of-a-device", [] { return refused(::utimensat(AT_FDCWD, "/dev/null", nullptr, 0)); }},
    {"kernel-memory", [] { return read_start("/proc/kcore").empty() ? held("empty") : through("read it"); }},
    {"kernel-keys", [] { return read_start("/proc/keys").empty() ? held("empty") : through("read it"); }},
    {"kernel-symbols", [] { return read_start("/proc/kallsyms").empty() ? held("empty") : through("read it"); }},
    {"sysrq", [] { return must_not_write("/proc/sysrq-trigger", "h"); }},
    {"core-pattern", [] { return must_not_write("/proc/sys/kernel/core_pattern", "|/bin/true"); }},
    {"modprobe-path", [] { return must_not_write("/proc/sys/kernel/modprobe", "/tmp/x"); }},
    {"randomization", [] { return must_not_write("/proc/sys/kernel/randomize_va_space", "0"); }},
    {"namespace-limit", [] { return must_not_write("/proc/sys/user/max_user_namespaces", "100"); }},
    {"forwarding", [] { return must_not_write("/proc/sys/net/ipv4/ip_forward", "1"); }},
    {"low-ports", [] { return must_not_write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"); }},
    {"binary-formats", [] { return must_not_write("/proc/sys/fs/binfmt_misc/register", ":x:M::x::/bin/true:"); }},
    {"interrupt-affinity", [] { return must_not_write("/proc/irq/default_smp_affinity", "1"); }},
    {"uid-map", [] { return must_not_write("/proc/self/uid_map", "0 0 1"); }},
    {"own-login-uid", [] { return must_not_write("/proc/self/loginuid", "0"); }},
    {"kernel-tunables", [] { return must_not_write("/sys/kernel/uevent_helper", "/tmp/x"); }},
    {"power-state", [] { return must_not_write("/sys/power/state", "mem"); }},
    {"processor-off", [] { return must_not_write("/sys/devices/system/cpu/cpu1/online", "0"); }},
    {"cgroup-of-the-parent",
     [] {
       for (const char* path : {"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs",
                                "/sys/fs/cgroup/pids/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs",
                                "/sys/fs/cgroup/devices/release_agent", "/sys/fs/cgroup/release_agent"}) {
         if (const Outcome each = must_not_write(path, "1"); each.through) return each;
       }
       return held("none can be written");
     }},
    {"cgroup-names",
     [] {
       // With an own cgroup namespace every path starts at its root (cgroup_namespaces(7)).
       return read_start("/proc/self/cgroup").find("/..") == std::string::npos ? held("own root")
                                                                               : through("it tells of the host's");
     }},
    {"engine-sockets",
     [] {
       // The control sockets of container engines, which are root for whoever reaches them.
       for (const char* path : {"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock",
                                "/run/podman/podman.sock", "/run/dbus/system_bus_socket", "/run/systemd/private"}) {
         if (::access(path, F_OK) == 0) return through(std::string(path) + " is there");
       }
       return held("none is there");
     }},
};

}  // namespace

std::span<const Attempt> file_attempts() {
  return kAttempts;
}

}  // namespace hostile
