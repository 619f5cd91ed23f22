// Files of the host that are read and replaced by name in a folder held by descriptor, so that no link is followed.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::workspace {

struct FileContent {
  std::string text;
  struct stat info{};
};

// Reads `path` below `folder`, which may be a guest's: only a regular file on the same file system, of at most `limit`
// bytes, and no component of the way may be a link. Nothing when there is none.
[[nodiscard]] base::Result<std::optional<FileContent>> read_below(int folder, const std::string& path, size_t limit);

// The same for an absolute path of the host.
[[nodiscard]] base::Result<std::optional<FileContent>> read_on_host(const std::string& path, size_t limit);

// Opens the folder at the absolute `path`, O_PATH, following nothing. With `create`, missing ones are made on the way,
// with mode 0700 and the owner of the folder above.
[[nodiscard]] base::Result<base::Fd> open_host_folder(const std::string& path, bool create);

// Puts `text` at `path` in one step. `before` is the file that it replaces, whose owner and mode it takes; without one
// it is new, with mode 0600 and the owner of the folder. False when what is there is not `before` any more: then
// nothing is changed.
[[nodiscard]] base::Result<bool> replace_on_host(const std::string& path, std::string_view text,
                                                 const std::optional<FileContent>& before);

}  // namespace belljar::workspace
