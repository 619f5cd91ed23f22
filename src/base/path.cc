#include "base/path.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/text.h"

namespace belljar::base {

std::string normal_path(std::string_view path) {
  if (path.empty() || path.front() != '/' || path.find('\0') != std::string_view::npos) return {};
  std::vector<std::string_view> kept;
  for (const std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (kept.empty()) return {};
      kept.pop_back();
      continue;
    }
    kept.push_back(part);
  }
  std::string out;
  for (const std::string_view part : kept) {
    out += '/';
    out += part;
  }
  return out.empty() ? "/" : out;
}

bool is_within(std::string_view path, std::string_view ancestor) {
  if (ancestor == "/") return !path.empty() && path.front() == '/';
  return path.starts_with(ancestor) && (path.size() == ancestor.size() || path[ancestor.size()] == '/');
}

std::string parent_of(std::string_view path) {
  const size_t at = path.rfind('/');
  if (at == std::string_view::npos || at == 0) return "/";
  return std::string(path.substr(0, at));
}

std::string_view name_of(std::string_view path) {
  const size_t at = path.rfind('/');
  return at == std::string_view::npos ? path : path.substr(at + 1);
}

Result<Fd> open_resolved(int directory, const std::string& path, uint64_t flags, uint64_t resolve) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = resolve;
  const long fd = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
  if (fd < 0) {
    const int code = errno;
    // Linux has it since 5.6; Belljar's own filter refuses it to guests.
    return system_error("open", path, code,
                        code == ENOSYS ? "openat2(2) is refused here, as it is inside of a guest of belljar's" : "");
  }
  return Fd(static_cast<int>(fd));
}

Result<std::string> real_path(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::array<char, PATH_MAX> buffer{};
  const ssize_t n = ::readlink(link.c_str(), buffer.data(), buffer.size());
  if (n < 0) return system_error("readlink", link, errno);
  std::string path(buffer.data(), static_cast<size_t>(n));
  if (path.empty() || path.front() != '/' || path.ends_with(" (deleted)")) {
    return refuse("resolve", path, "the file is gone or has no path");
  }
  return path;
}

Result<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> found(::realpath(path.c_str(), nullptr), &std::free);
  if (!found) return system_error("resolve", path, errno);
  return std::string(found.get());
}

}  // namespace belljar::base
