#include "guest/entrusted.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "base/io.h"

namespace belljar::guest {
namespace {

constexpr size_t kMostText = size_t{1} << 20U;

Finding check_file(const ExpectedFile& file) {
  const std::string path(file.path);
  struct stat found{};
  const int code = ::lstat(path.c_str(), &found) == 0 ? 0 : errno;
  if (file.absent) {
    if (code == ENOENT || code == ENOTDIR) return {};
    return {path, "nothing", code == 0 ? "there" : strerrorname_np(code), code};
  }
  if (code != 0) return {path, "a file", strerrorname_np(code), code};
  if (!S_ISREG(found.st_mode)) return {path, "a regular file", "another kind"};
  if (file.inode != 0) {
    if (found.st_dev != file.device || found.st_ino != file.inode) return {path, "the launcher's file", "another one"};
    struct statvfs mount{};
    if (::statvfs(path.c_str(), &mount) != 0 || (mount.f_flag & ST_RDONLY) == 0) return {path, "read-only", "writable"};
    const base::Fd opened(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!opened) return {path, "readable", strerrorname_np(errno), errno};
  }
  if (file.holds.empty()) return {};
  const auto text = base::read_regular_file(path, kMostText, false);
  if (!text) return {path, "readable", strerrorname_np(text.error().code), text.error().code};
  if (!std::string_view(*text).contains(file.holds)) return {path, std::string(file.holds), "not in it"};
  return {};
}

std::string name_of_variable(std::string_view variable) {
  return std::string(variable.substr(0, variable.find('=')));
}

// The first of `these` that `others` has not, or not as often.
std::string_view first_beyond(const std::vector<std::string_view>& these, const std::vector<std::string_view>& others) {
  for (const std::string_view one : these) {
    if (std::ranges::count(these, one) > std::ranges::count(others, one)) return one;
  }
  return {};
}

}  // namespace

Finding check_files(const Config& config) {
  for (const ExpectedFile& file : config.files) {
    Finding found = check_file(file);
    if (!found.expected.empty()) return found;
  }
  return {};
}

Finding check_environment(const Config& config, const std::vector<std::string_view>& environment) {
  if (config.engine_environment.empty()) return {};
  const std::string host = "HOSTNAME=" + std::string(config.hostname);
  std::vector<std::string_view> found;
  for (const std::string_view one : environment) {
    if (one != host) found.push_back(one);
  }
  if (const std::string_view one = first_beyond(found, config.engine_environment); !one.empty()) {
    return {name_of_variable(one), "as planned, or not set", "another value"};
  }
  if (const std::string_view one = first_beyond(config.engine_environment, found); !one.empty()) {
    return {name_of_variable(one), "set", "not set"};
  }
  return {};
}

Finding check_task_folders(const Config& config) {
  const std::string work(config.work_folder);
  const std::string metadata(config.metadata);
  struct stat of_work{}, of_metadata{};
  if (::lstat(work.c_str(), &of_work) != 0) return {work, "the work folder", strerrorname_np(errno), errno};
  if (::lstat(metadata.c_str(), &of_metadata) != 0) {
    return {metadata, "the metadata's folder", strerrorname_np(errno), errno};
  }
  if (!S_ISDIR(of_work.st_mode) || of_work.st_uid != config.uid) {
    return {work, "a folder of the guest's", "owned by " + std::to_string(of_work.st_uid)};
  }
  // Two volumes are two file systems (stat(2)): on one, a write to the work could be one to the metadata.
  if (of_work.st_dev == of_metadata.st_dev) return {metadata, "a volume of its own", "the work folder's"};
  return {};
}

}  // namespace belljar::guest
