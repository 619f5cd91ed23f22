#include "base/io.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

namespace belljar::base {

bool write_all(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd, at, size);
    if (n < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool read_exact(int fd, void* data, size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = ::read(fd, at, size);
    if (n < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (n == 0) {
      errno = 0;
      return false;
    }
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

Result<std::string> read_to_end(int fd, size_t limit, std::string_view name) {
  std::string out;
  size_t used = 0;
  for (;;) {
    if (out.size() - used < 4096) out.resize(used + (used == 0 ? 4096 : used));
    const ssize_t n = ::read(fd, out.data() + used, out.size() - used);
    if (n < 0) {
      if (errno == EINTR) continue;
      return system_error("read", name, errno);
    }
    if (n == 0) break;
    used += static_cast<size_t>(n);
    if (used > limit) return system_error("read", name, EFBIG);
  }
  out.resize(used);
  return out;
}

Result<std::string> read_file(const std::string& path, size_t limit, bool follow) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW)));
  if (!fd) return system_error("open", path, errno);
  return read_to_end(fd.get(), limit, path);
}

Result<std::string> read_regular_file(const std::string& path, size_t limit, bool follow) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW)));
  if (!fd) return system_error("open", path, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return system_error("stat", path, errno);
  if (!S_ISREG(status.st_mode)) return refuse("read", path, "not a regular file", "name a plain file");
  return read_to_end(fd.get(), limit, path);
}

}  // namespace belljar::base
