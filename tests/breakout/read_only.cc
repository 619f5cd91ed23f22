// Writing where the guest may only read: the system, its settings, `.git`, and a folder of the policy.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include <initializer_list>

#include "breakout/hostile.h"

namespace hostile {
namespace {

std::string git(const char* below = "") {
  return fact("work") + "/.git" + below;
}
std::string reading(const char* below = "") {
  return fact("reading") + below;
}

// The first of several tries, made in this order, that is not refused decides.
Outcome all_refused(std::initializer_list<Outcome> outcomes) {
  Outcome last = held("");
  for (const Outcome& each : outcomes) {
    if (each.through) return each;
    last = each;
  }
  return last;
}

Outcome write_to(const std::string& path) {
  return all_refused({refused(::open(path.c_str(), O_WRONLY | O_CLOEXEC)),
                      refused(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC)),
                      refused(::open(path.c_str(), O_RDONLY | O_TRUNC | O_CLOEXEC)),
                      refused(::truncate(path.c_str(), 0))});
}

Outcome create_in(const std::string& folder) {
  const std::string made = folder + "/made-by-guest";
  return all_refused({refused(::open(made.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)),
                      refused(::mkdir(made.c_str(), 0755)), refused(::symlink("/", made.c_str())),
                      refused(::mkfifo(made.c_str(), 0644)),
                      refused(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0644))});
}

Outcome reopen(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return held(strerrorname_np(errno));
  const std::string again = "/proc/self/fd/" + std::to_string(fd);
  const int handle = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  const std::string by_handle = "/proc/self/fd/" + std::to_string(handle);
  return all_refused({refused(::open(again.c_str(), O_RDWR | O_CLOEXEC)),
                      refused(::open(by_handle.c_str(), O_RDWR | O_CLOEXEC)), refused(::truncate(again.c_str(), 0)),
                      refused(::ftruncate(fd, 0)), refused(::fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 1))});
}

Outcome change(const std::string& path) {
  const char* name = path.c_str();
  return all_refused({refused(::chmod(name, 0777)), refused(::chown(name, ::getuid(), ::getgid())),
                      refused(::utime(name, nullptr)), refused(::setxattr(name, "user.guest", "x", 1, 0)),
                      refused(::removexattr(name, "user.guest"))});
}

Outcome link_and_write(const std::string& path) {
  return all_refused({refused(::link(path.c_str(), "alias")),
                      refused(::linkat(AT_FDCWD, path.c_str(), AT_FDCWD, "alias", AT_SYMLINK_FOLLOW))});
}

Outcome remove(const std::string& path) {
  return all_refused({refused(::unlink(path.c_str())), refused(::rename(path.c_str(), "taken")),
                      refused(::rename("../replacement", path.c_str()))});
}

const Attempt kAttempts[] = {
    {"usr-write", [] { return write_to("/usr/bin/env"); }},
    {"usr-create", [] { return all_refused({create_in("/usr"), create_in("/usr/local/bin"), create_in("/usr/bin")}); }},
    {"usr-reopen", [] { return reopen("/usr/bin/env"); }},
    {"usr-change", [] { return all_refused({change("/usr/bin/env"), change("/usr")}); }},
    {"usr-remove", [] { return all_refused({remove("/usr/bin/env"), remove("/usr/local")}); }},
    {"etc-write", [] { return all_refused({write_to("/etc/passwd"), write_to("/etc/hosts"), create_in("/etc")}); }},
    {"etc-reopen", [] { return all_refused({reopen("/etc/passwd"), reopen("/etc/hosts")}); }},
    {"etc-remove", [] { return all_refused({remove("/etc/passwd"), remove("/etc/hosts"), remove("/etc")}); }},
    {"root-create", [] { return all_refused({create_in("/"), create_in("/dev"), create_in("/proc")}); }},
    {"root-move",
     [] { return all_refused({refused(::rename("/usr", "/other")), refused(::rename("/bin", "/other"))}); }},
    {"git-write", [] { return all_refused({write_to(git("/config")), write_to(git("/HEAD"))}); }},
    {"git-create", [] { return all_refused({create_in(git()), create_in(git("/hooks")), create_in(git("/refs"))}); }},
    {"git-reopen", [] { return reopen(git("/config")); }},
    {"git-change", [] { return all_refused({change(git()), change(git("/config")), change(git("/hooks"))}); }},
    {"git-remove", [] { return all_refused({remove(git("/config")), remove(git("/hooks"))}); }},
    {"git-move-away",
     [] {
       return all_refused({refused(::rename(git().c_str(), (fact("work") + "/old").c_str())),
                           refused(::rename(git().c_str(), "old")), refused(::rmdir(git().c_str()))});
     }},
    {"git-exchange",
     [] {
       ::mkdir("evil", 0755);
       return refused(::syscall(SYS_renameat2, AT_FDCWD, "evil", AT_FDCWD, git().c_str(), RENAME_EXCHANGE));
     }},
    {"git-replace",
     [] {
       ::mkdir("evil", 0755);
       return refused(::rename("evil", git().c_str()));
     }},
    {"git-link-and-write", [] { return link_and_write(git("/config")); }},
    {"git-by-folder-descriptor",
     [] {
       const int folder = ::open(git().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
       return all_refused({refused(::openat(folder, "config", O_RDWR | O_CLOEXEC)),
                           refused(::openat(folder, "hooks/pre-commit", O_WRONLY | O_CREAT | O_CLOEXEC, 0755)),
                           refused(::unlinkat(folder, "config", 0)),
                           refused(::renameat(folder, "config", AT_FDCWD, "c"))});
     }},
    {"git-config-by-git",
     [] {
       return shell("git -C " + fact("work") + " config core.fsmonitor /tmp/x") == 0 ? through("git wrote it")
                                                                                     : held("git failed");
     }},
    {"read-folder-write", [] { return all_refused({write_to(reading("/file")), create_in(reading())}); }},
    {"read-folder-reopen", [] { return reopen(reading("/file")); }},
    {"read-folder-remove", [] { return all_refused({remove(reading("/file")), remove(reading())}); }},
    {"read-folder-link", [] { return link_and_write(reading("/file")); }},
    {"remount", [] { return refused(::mount(nullptr, "/usr", nullptr, MS_REMOUNT | MS_BIND, nullptr)); }},
    {"remount-git", [] { return refused(::mount(nullptr, git().c_str(), nullptr, MS_REMOUNT | MS_BIND, nullptr)); }},
    {"unmount-git", [] { return refused(::umount2(git().c_str(), MNT_DETACH)); }},
    {"bind-over-work", [] { return refused(::mount("..", "..", nullptr, MS_BIND, nullptr)); }},
    {"program-of-belljar",
     [] {
       // Init's own program, by every name the guest has for it.
       return all_refused({refused(::open("/proc/1/exe", O_WRONLY | O_CLOEXEC)),
                           refused(::open("/proc/1/map_files", O_RDONLY | O_DIRECTORY | O_CLOEXEC))});
     }},
};

}  // namespace

std::span<const Attempt> read_only_attempts() {
  return kAttempts;
}

}  // namespace hostile
