#include "remote/outbox.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace belljar::remote {

bool Outbox::flush(int fd, size_t most) {
  while (!bytes_.empty()) {
    const size_t size = std::min(most, bytes_.size());
    const ssize_t n = ::write(fd, bytes_.data(), size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) {
      bytes_.clear();
      return false;
    }
    bytes_.erase(0, static_cast<size_t>(n));
    written_ += static_cast<size_t>(n);
    if (most != SIZE_MAX) return true;  // poll(2) has to be asked again
  }
  return true;
}

size_t Outbox::take_written() {
  return std::exchange(written_, 0);
}

bool read_some(int fd, size_t most, std::string& out) {
  const size_t had = out.size();
  out.resize(had + most);
  ssize_t n = 0;
  do {
    n = ::read(fd, out.data() + had, most);
  } while (n < 0 && errno == EINTR);
  out.resize(had + (n > 0 ? static_cast<size_t>(n) : 0));
  return n > 0 || (n < 0 && errno == EAGAIN);
}

void make_nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace belljar::remote
