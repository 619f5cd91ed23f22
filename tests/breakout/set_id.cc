// Files with set-id bits, file capabilities and device nodes.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "breakout/hostile.h"

namespace hostile {
namespace {

constexpr long kFchmodat2 = 452;
constexpr long kFileSetattr = 469;
constexpr mode_t kSetUid = 04755;
constexpr mode_t kSetGid = 02755;
constexpr mode_t kBits = S_ISUID | S_ISGID;

// What counts is the file that is there afterwards.
Outcome judge(const char* path, long result) {
  const int code = errno;
  struct stat found{};
  if (::lstat(path, &found) != 0) return held(std::string("no file, ") + strerrorname_np(code));
  if (!S_ISDIR(found.st_mode) && (found.st_mode & kBits) != 0) return through("the bit is set");
  if (S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode)) return through("a device node is there");
  return held(result < 0 ? strerrorname_np(code) : "carried out without the bit");
}

Outcome change(long (*call)(const char* path, int fd)) {
  put_file("f", "#!/bin/sh\n");
  const int fd = ::open("f", O_RDWR | O_CLOEXEC);
  errno = 0;
  return judge("f", call("f", fd));
}

Outcome create(long (*call)(const char* path)) {
  ::umask(0);
  errno = 0;
  return judge("f", call("f"));
}

// A 32-bit system call by its gate: other numbers, and a filter for 64 bits may not see it.
long gate32(long number, const char* path, long mode) {
  // The path must lie below 4 GiB.
  char* low =
      static_cast<char*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0));
  if (low == MAP_FAILED) return -1;
  std::strcpy(low, path);
  long result = number;
  asm volatile("int $0x80" : "+a"(result) : "b"(low), "c"(mode) : "memory", "r8", "r9", "r10", "r11");
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

// cap_setuid=ep of version 2 (capabilities(7), "File capability versioning").
constexpr std::array<uint32_t, 5> kCapability = {0x02000001, 1U << 7U, 0, 0, 0};

const Attempt kAttempts[] = {
    {"chmod", [] { return change([](const char* path, int) -> long { return ::chmod(path, kSetUid); }); }},
    {"chmod-setgid", [] { return change([](const char* path, int) -> long { return ::chmod(path, kSetGid); }); }},
    {"chmod-both", [] { return change([](const char* path, int) -> long { return ::chmod(path, 07777); }); }},
    {"chmod-high-bits",
     [] { return change([](const char* path, int) { return ::syscall(SYS_chmod, path, kSetUid | (1UL << 32U)); }); }},
    {"fchmod", [] { return change([](const char*, int fd) -> long { return ::fchmod(fd, kSetUid); }); }},
    {"fchmodat",
     [] { return change([](const char* path, int) { return ::syscall(SYS_fchmodat, AT_FDCWD, path, kSetUid); }); }},
    {"fchmodat2",
     [] { return change([](const char* path, int) { return ::syscall(kFchmodat2, AT_FDCWD, path, kSetUid, 0); }); }},
    {"fchmodat2-empty-path",
     [] { return change([](const char*, int fd) { return ::syscall(kFchmodat2, fd, "", kSetUid, AT_EMPTY_PATH); }); }},
    {"chmod-by-proc-fd",
     [] {
       return change([](const char*, int fd) -> long {
         return ::chmod(("/proc/self/fd/" + std::to_string(fd)).c_str(), kSetUid);
       });
     }},
    {"chmod-32-bit", [] { return change([](const char* path, int) { return gate32(15, path, kSetUid); }); }},
    {"chmod-x32",
     [] { return change([](const char* path, int) { return ::syscall(0x40000000L + SYS_chmod, path, kSetUid); }); }},
    {"file-setattr",
     [] {
       return change([](const char* path, int) {
         std::array<uint64_t, 4> attributes{FS_IMMUTABLE_FL, 0, 0, 0};
         return ::syscall(kFileSetattr, AT_FDCWD, path, attributes.data(), sizeof attributes, 0);
       });
     }},
    {"open",
     [] { return create([](const char* path) { return ::syscall(SYS_open, path, O_CREAT | O_RDWR, kSetUid); }); }},
    {"open-setgid",
     [] { return create([](const char* path) { return ::syscall(SYS_open, path, O_CREAT | O_RDWR, kSetGid); }); }},
    {"openat",
     [] {
       return create(
           [](const char* path) { return ::syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_EXCL | O_RDWR, kSetUid); });
     }},
    {"openat2",
     [] {
       return create([](const char* path) {
         const std::array<uint64_t, 3> how{O_CREAT | O_RDWR, kSetUid, 0};
         return ::syscall(SYS_openat2, AT_FDCWD, path, how.data(), sizeof how);
       });
     }},
    {"creat", [] { return create([](const char* path) { return ::syscall(SYS_creat, path, kSetUid); }); }},
    {"creat-32-bit", [] { return create([](const char* path) { return gate32(8, path, kSetUid); }); }},
    {"open-x32",
     [] {
       return create(
           [](const char* path) { return ::syscall(0x40000000L + SYS_open, path, O_CREAT | O_RDWR, kSetUid); });
     }},
    {"mknod-regular",
     [] { return create([](const char* path) { return ::syscall(SYS_mknod, path, S_IFREG | kSetUid, 0); }); }},
    {"mknodat-regular",
     [] { return create([](const char* path) { return ::syscall(SYS_mknodat, AT_FDCWD, path, kSetUid, 0); }); }},
    {"mknod-fifo",
     [] { return create([](const char* path) { return ::syscall(SYS_mknod, path, S_IFIFO | kSetUid, 0); }); }},
    {"temporary-file-linked",
     [] {
       return create([](const char* path) -> long {
         const int fd = ::open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, kSetUid);
         if (fd < 0) return -1;
         return ::linkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(fd)).c_str(), AT_FDCWD, path, AT_SYMLINK_FOLLOW);
       });
     }},
    {"temporary-file-changed-then-linked",
     [] {
       return create([](const char* path) -> long {
         const int fd = ::open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0755);
         if (fd < 0 || ::fchmod(fd, kSetUid) != 0) return -1;
         return ::linkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(fd)).c_str(), AT_FDCWD, path, AT_SYMLINK_FOLLOW);
       });
     }},
    {"socket-of-a-changed-mode",
     [] {
       return create([](const char* path) -> long {
         const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
         ::fchmod(fd, 07777);
         sockaddr_un address{};
         address.sun_family = AF_UNIX;
         std::strcpy(address.sun_path, path);
         return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
       });
     }},
    {"folder-set-uid",
     [] {
       ::umask(0);
       ::syscall(SYS_mkdir, "d", 04777);
       ::chmod("d", 04777);
       struct stat found{};
       return ::stat("d", &found) == 0 && (found.st_mode & S_ISUID) != 0 ? through("a set-uid folder") : held("no bit");
     }},
    {"cp-preserving",
     [] {
       shell("cp -p /usr/bin/su f; cp -a /usr/bin/passwd f2; cp --preserve=all /usr/bin/newgrp f3");
       for (const char* path : {"f2", "f3"}) {
         if (const Outcome each = judge(path, 0); each.through) return each;
       }
       return judge("f", 0);
     }},
    {"install-set-uid",
     [] {
       shell("install -m 4755 /usr/bin/true f");
       return judge("f", 0);
     }},
    {"tar-preserving",
     [] {
       shell("tar cf - -C /usr/bin su | tar xpf -; mv su f");
       return judge("f", 0);
     }},
    {"perl-chmod",
     [] {
       shell("touch f; perl -e 'chmod 06755, \"f\"'");
       return judge("f", 0);
     }},
    {"link-to-a-set-uid-program",
     [] { return create([](const char* path) -> long { return ::link("/usr/bin/su", path); }); }},
    {"link-by-descriptor",
     [] {
       return create([](const char* path) -> long {
         const int fd = ::open("/usr/bin/su", O_RDONLY | O_CLOEXEC);
         return ::linkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(fd)).c_str(), AT_FDCWD, path, AT_SYMLINK_FOLLOW);
       });
     }},
    {"rename-a-set-uid-program",
     [] { return create([](const char* path) -> long { return ::rename("/usr/bin/su", path); }); }},
    {"file-capability",
     [] {
       put_file("f", "x");
       return refused(::setxattr("f", "security.capability", kCapability.data(), sizeof kCapability, 0));
     }},
    {"file-capability-of-the-namespace",
     [] {
       put_file("f", "x");
       const std::array<uint32_t, 6> capability = {0x03000001, 1U << 7U, 0, 0, 0, ::getuid()};
       return refused(::setxattr("f", "security.capability", capability.data(), sizeof capability, 0));
     }},
    {"trusted-attribute",
     [] {
       put_file("f", "x");
       return refused(::setxattr("f", "trusted.overlay.opaque", "y", 1, 0));
     }},
    {"immutable-flag",
     [] {
       put_file("f", "x");
       const int fd = ::open("f", O_RDONLY | O_CLOEXEC);
       int flags = FS_IMMUTABLE_FL;
       return refused(::ioctl(fd, FS_IOC_SETFLAGS, &flags));
     }},
    {"give-to-root",
     [] {
       put_file("f", "x");
       return refused(::chown("f", 0, 0));
     }},
    {"give-to-another",
     [] {
       put_file("f", "x");
       return refused(::chown("f", ::getuid() + 1, static_cast<gid_t>(-1)));
     }},
    {"whiteout-by-mknod",
     [] { return create([](const char* path) -> long { return ::mknod(path, S_IFCHR | 0600, 0); }); }},
    {"whiteout-by-rename",
     [] {
       put_file("f", "x");
       return judge("f", ::syscall(SYS_renameat2, AT_FDCWD, "f", AT_FDCWD, "g", RENAME_WHITEOUT));
     }},
    {"character-device",
     [] { return create([](const char* path) -> long { return ::mknod(path, S_IFCHR | 0666, makedev(1, 1)); }); }},
    {"block-device",
     [] { return create([](const char* path) -> long { return ::mknod(path, S_IFBLK | 0666, makedev(8, 0)); }); }},
    {"block-device-at",
     [] {
       return create(
           [](const char* path) { return ::syscall(SYS_mknodat, AT_FDCWD, path, S_IFBLK | 0666, makedev(8, 0)); });
     }},
    {"write-a-planted-set-uid-file",
     [] {
       // The kernel takes the bit away from a file that somebody without CAP_FSETID writes to.
       const int fd = ::open("../planted-set-uid", O_WRONLY | O_CLOEXEC);
       if (fd < 0) return held(strerrorname_np(errno));
       if (::write(fd, "#!", 2) != 2) return held(strerrorname_np(errno));
       struct stat found{};
       ::fstat(fd, &found);
       return (found.st_mode & kBits) != 0 ? through("written, and the bit stayed") : held("the bit went");
     }},
    {"execute-a-planted-set-uid-file",
     [] {
       const int status = shell("../planted-set-uid-hostile who > who");
       const std::string who = read_start("who");
       const std::string self = std::to_string(::getuid());
       if (status != 0) return held("it did not run");
       return who == self + " " + self + "\n" ? held("still user " + self) : through("became " + who);
     }},
};

}  // namespace

std::span<const Attempt> set_id_attempts() {
  return kAttempts;
}

}  // namespace hostile
