#include "linux/user_namespace.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>

#include "base/io.h"
#include "linux/clone.h"

namespace belljar::linux {
namespace {

// The child shares the caller's memory and thread-local storage while the caller runs on: it must not touch errno.
int64_t bare_syscall3(int64_t number, int64_t a, int64_t b, int64_t c) {
  int64_t result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

struct Holder {
  int read_end = -1;
  int write_end = -1;
  char byte = 0;
};

// Waits for the end of the pipe, so that the holder goes with its maker however that ends.
int hold(void* argument) {
  auto* holder = static_cast<Holder*>(argument);
  bare_syscall3(SYS_close, holder->write_end, 0, 0);
  bare_syscall3(SYS_read, holder->read_end, reinterpret_cast<int64_t>(&holder->byte), 1);
  return 0;
}

base::Status write_proc(pid_t pid, const char* name, const char* text) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/%s", pid, name);
  const base::Fd fd(::open(path.data(), O_WRONLY | O_CLOEXEC));
  if (!fd || !base::write_all(fd.get(), text)) return base::system_error("write", path.data(), errno);
  return {};
}

base::Result<base::Fd> map_and_open(pid_t pid, uid_t inside_uid, gid_t inside_gid, uid_t outside_uid,
                                    gid_t outside_gid) {
  std::array<char, 64> line{};
  std::snprintf(line.data(), line.size(), "%u %u 1\n", inside_uid, outside_uid);
  BELLJAR_TRY(write_proc(pid, "uid_map", line.data()));
  std::snprintf(line.data(), line.size(), "%u %u 1\n", inside_gid, outside_gid);
  BELLJAR_TRY(write_proc(pid, "gid_map", line.data()));
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/ns/user", pid);
  base::Fd fd(::open(path.data(), O_RDONLY | O_CLOEXEC));
  if (!fd) return base::system_error("open", path.data(), errno);
  return fd;
}

}  // namespace

base::Result<base::Fd> make_user_namespace(uid_t inside_uid, gid_t inside_gid, uid_t outside_uid, gid_t outside_gid) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_error("pipe", "", errno);
  base::Fd read_end(ends[0]);
  base::Fd write_end(ends[1]);
  Holder holder{ends[0], ends[1]};
  alignas(16) std::array<char, 4096> stack{};
  const int64_t pid = clone_sharing_memory(CLONE_NEWUSER, nullptr, -1, stack.data(), stack.size(), &hold, &holder);
  if (pid < 0) {
    return base::system_error("make a user namespace", "", static_cast<int>(-pid), "see 'belljar doctor'");
  }
  auto made = map_and_open(static_cast<pid_t>(pid), inside_uid, inside_gid, outside_uid, outside_gid);
  write_end.reset();  // the holder reads the end and leaves
  while (::waitpid(static_cast<pid_t>(pid), nullptr, 0) < 0 && errno == EINTR) {
  }
  return made;
}

}  // namespace belljar::linux
