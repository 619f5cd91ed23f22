// Whole reads and writes on descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::base {

// Writes all of `data`, going on after EINTR and short writes. False with errno set when the descriptor fails.
[[nodiscard]] bool write_all(int fd, const void* data, size_t size);
[[nodiscard]] inline bool write_all(int fd, std::string_view text) {
  return write_all(fd, text.data(), text.size());
}

// Reads exactly `size` bytes. False at an early end (errno 0) or an error.
[[nodiscard]] bool read_exact(int fd, void* data, size_t size);

// Reads to the end; more than `limit` bytes is an error (EFBIG), so that a hostile file cannot exhaust memory.
[[nodiscard]] Result<std::string> read_to_end(int fd, size_t limit, std::string_view name);

// Opens (no link followed in the last component when `follow` is false) and reads a regular file or a /proc file.
[[nodiscard]] Result<std::string> read_file(const std::string& path, size_t limit = size_t{1} << 20U,
                                            bool follow = true);

// As read_file(), and anything but a regular file is refused: a FIFO would read as empty, a device without end.
[[nodiscard]] Result<std::string> read_regular_file(const std::string& path, size_t limit, bool follow);

}  // namespace belljar::base
