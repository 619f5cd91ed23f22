// A file of the person's that a task gets to read, as it was at the capture.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "tiers/docker/meeting.h"

namespace belljar::tiers::docker::task {

// Reads `path` once, through one descriptor: a regular file, no link on the way, and no more than `most` bytes even
// when it grows meanwhile. A file that changes while it is read is refused. `operation` is for the error.
[[nodiscard]] base::Result<std::string> read_once(std::string_view operation, const std::string& path, size_t most);

// The text in a sealed memfd (memfd_create(2), F_SEAL_WRITE and its like): nobody can change it, this process neither.
// The kernel binds no memfd to a path, its mount being nobody's (mount(2), EINVAL), so the container gets a file with
// the same bytes in the launch's own folder; check() holds it against the sealed ones.
class SealedInput {
 public:
  static constexpr size_t kMost = size_t{1} << 20U;

  [[nodiscard]] static base::Result<SealedInput> seal(std::string_view name, std::string_view text);

  // Makes the file `name` there, once; its path on the host.
  [[nodiscard]] base::Result<std::string> publish(Meeting& meeting, const std::string& name);
  // It is still that very file, unchanged, with the sealed bytes.
  [[nodiscard]] base::Status check() const;

  [[nodiscard]] int fd() const { return sealed_.get(); }
  // Of the published file.
  [[nodiscard]] const struct stat& identity() const { return identity_; }
  [[nodiscard]] base::Result<std::string> text() const;

 private:
  std::string name_;
  base::Fd sealed_;
  std::string path_;
  struct stat identity_{};
};

}  // namespace belljar::tiers::docker::task
