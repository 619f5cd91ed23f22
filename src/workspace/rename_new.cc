#include "workspace/rename_new.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>

namespace belljar::workspace {

int rename_new(int from, const char* leaf, int to, const char* name) {
  if (::renameat2(from, leaf, to, name, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  struct stat found{};
  if (::fstatat(to, name, &found, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  if (errno != ENOENT) return errno;
  return ::renameat(from, leaf, to, name) == 0 ? 0 : errno;
}

}  // namespace belljar::workspace
