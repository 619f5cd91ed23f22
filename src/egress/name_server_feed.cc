#include "egress/name_server_feed.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace belljar::egress {

void NameServerFeed::on_events(uint32_t /*events*/) {
  std::array<char, kMostNameServers + 1> text;
  for (;;) {
    const ssize_t n = ::recv(socket_.get(), text.data(), text.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return hang_up();
    if (static_cast<size_t>(n) <= kMostNameServers) take_(std::string(text.data(), static_cast<size_t>(n)));
  }
}

// A hang-up stays readable.
void NameServerFeed::hang_up() {
  if (!socket_) return;
  loop_.forget(socket_.get(), *this);
  socket_.reset();
}

}  // namespace belljar::egress
