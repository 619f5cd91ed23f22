#include "linux/user_namespace.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <string>
#include <utility>

#include "base/io.h"
#include "base/reap.h"
#include "base/text.h"
#include "linux/clone.h"

namespace belljar::linux {
namespace {

// The child shares the caller's memory and thread-local storage while the caller runs on: it must not touch errno.
int64_t bare_syscall3(int64_t number, int64_t a, int64_t b, int64_t c) {
  int64_t result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

base::Status write_proc(int process, const char* name, uint32_t inside, uint32_t outside) {
  std::array<char, 64> line{};
  const int size = std::snprintf(line.data(), line.size(), "%u %u 1\n", inside, outside);
  const base::Fd fd(::openat(process, name, O_WRONLY | O_CLOEXEC));
  if (!fd || !base::write_all(fd.get(), line.data(), static_cast<size_t>(size))) {
    return base::system_error("write", name, errno);
  }
  return {};
}

}  // namespace

struct UserNamespace::Holder {
  base::Fd read_end;
  base::Fd write_end;
  // What the process reads, which shares this memory with a maker that goes on closing its own ends.
  int64_t own_read_end = -1;
  char byte = 0;
  alignas(16) std::array<char, 2048> stack;

  // Waits for the end of the pipe, so that the process goes with its maker however that ends.
  static int hold(void* argument) {
    auto* holder = static_cast<Holder*>(argument);
    // Every other copied descriptor too: a copy of another process's pipe or socket would keep that one waiting when
    // the maker is gone, as this one's in there would keep this.
    const int64_t own = holder->own_read_end;
    if (own > 0) bare_syscall3(SYS_close_range, 0, own - 1, 0);
    bare_syscall3(SYS_close_range, own + 1, UINT_MAX, 0);
    bare_syscall3(SYS_read, holder->own_read_end, reinterpret_cast<int64_t>(&holder->byte), 1);
    return 0;
  }
};

UserNamespace::UserNamespace(UserNamespace&& other) noexcept
    : holder_(std::move(other.holder_)), pid_(std::exchange(other.pid_, -1)), fd_(std::move(other.fd_)) {}

UserNamespace& UserNamespace::operator=(UserNamespace&& other) noexcept {
  if (this != &other) {
    collect();
    holder_ = std::move(other.holder_);
    pid_ = std::exchange(other.pid_, -1);
    fd_ = std::move(other.fd_);
  }
  return *this;
}

UserNamespace::UserNamespace() = default;
UserNamespace::~UserNamespace() {
  collect();
}

void UserNamespace::collect() {
  if (pid_ < 0) return;
  holder_->write_end.reset();
  (void)base::reap(pid_);
  pid_ = -1;
}

base::Status UserNamespace::map_and_open(const IdMap& map) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d", pid_);
  const base::Fd process(::open(path.data(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!process) return base::system_error("open", path.data(), errno);
  BELLJAR_TRY(write_proc(process.get(), "uid_map", map.inside_uid, map.outside_uid));
  BELLJAR_TRY(write_proc(process.get(), "gid_map", map.inside_gid, map.outside_gid));
  fd_ = base::Fd(::openat(process.get(), "ns/user", O_RDONLY | O_CLOEXEC));
  if (!fd_) return base::system_error("open", "ns/user", errno);
  holder_->write_end.reset();
  return {};
}

base::Result<UserNamespace> UserNamespace::make(const IdMap& map) {
  UserNamespace out;
  out.holder_ = std::make_unique<Holder>();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_error("pipe", "", errno);
  out.holder_->read_end = base::Fd(ends[0]);
  out.holder_->write_end = base::Fd(ends[1]);
  out.holder_->own_read_end = ends[0];
  auto& stack = out.holder_->stack;
  const int64_t pid =
      clone_sharing_memory(CLONE_NEWUSER, nullptr, -1, stack.data(), stack.size(), &Holder::hold, out.holder_.get());
  if (pid < 0) {
    return base::system_error("make a user namespace", "", static_cast<int>(-pid),
                              why_no_user_namespace(static_cast<int>(-pid)));
  }
  out.pid_ = static_cast<pid_t>(pid);
  BELLJAR_TRY(out.map_and_open(map));
  return out;
}

const char* why_no_user_namespace(int code) {
  switch (code) {
    case ENOSPC:
      return "the limit user.max_user_namespaces, or another of /proc/sys/user, is reached: 'belljar doctor' says how "
             "to "
             "raise it";
    case EPERM:
    case EACCES:
      return "kernel.unprivileged_userns_clone, AppArmor or a container forbids user namespaces: 'belljar doctor' "
             "names "
             "the remedy";
    default:
      return "see 'belljar doctor'";
  }
}

bool is_mapped_uid(uid_t uid) {
  const auto map = base::read_file("/proc/self/uid_map");
  if (!map) return true;
  for (const std::string_view line : base::split(*map, '\n')) {
    unsigned inside = 0;
    unsigned outside = 0;
    unsigned count = 0;
    if (std::sscanf(std::string(line).c_str(), "%u %u %u", &inside, &outside, &count) != 3) continue;
    if (uid >= inside && uid - inside < count) return true;
  }
  return false;
}

}  // namespace belljar::linux
