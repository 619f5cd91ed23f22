#include "base/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/path.h"

namespace belljar::base {
namespace {

constexpr std::string_view kHint = "set XDG_STATE_HOME to a folder you may write";

Status make_folders(const std::string& path, std::string_view operation) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  if (errno == ENOENT && path != "/") {
    BELLJAR_TRY(make_folders(parent_of(path), operation));
    if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  }
  return system_error(operation, path, errno, kHint);
}

}  // namespace

Result<Fd> open_private_folder(const std::string& path, std::string_view operation) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  Fd fd(::open(path.c_str(), kFlags));
  if (!fd && errno == ENOENT) {
    BELLJAR_TRY(make_folders(path, operation));
    fd.reset(::open(path.c_str(), kFlags));
  }
  struct stat found{};
  if (!fd || ::fstat(fd.get(), &found) != 0) return system_error(operation, path, errno, kHint);
  if (found.st_uid != ::geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return refuse(operation, path, "others could have written it, refusing", "chmod 700 it and own it");
  }
  return fd;
}

}  // namespace belljar::base
