// Bytes on their way into a descriptor that may not take them now.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace belljar::remote {

// Owns nothing but the bytes. The descriptor is non-blocking, or is only written to when poll(2) said POLLOUT, then at
// most PIPE_BUF bytes (pipe(7): so much is taken without waiting).
class Outbox {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  // Writes what fits. False when nobody reads any more; then the bytes are dropped.
  bool flush(int fd, size_t most);
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] size_t size() const { return bytes_.size(); }
  // How many bytes flush() has written since the last call.
  size_t take_written();

 private:
  std::string bytes_;
  size_t written_ = 0;
};

// What one read of a link or a stream takes.
inline constexpr size_t kChunk = size_t{32} << 10U;

// Reads what is there, at most `most` bytes, and appends it. False at the end or when it cannot be read any more.
bool read_some(int fd, size_t most, std::string& out);

void make_nonblocking(int fd);

}  // namespace belljar::remote
