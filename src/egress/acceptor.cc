#include "egress/acceptor.h"

#include <sys/socket.h>

#include <cerrno>

namespace belljar::egress {

void Acceptor::on_events(uint32_t /*events*/) {
  for (int i = 0; i < kBurst; ++i) {
    base::Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      take_(std::move(socket));
      continue;
    }
    // accept(2) also reports errors of the new connection; those concern nobody else.
    const bool shortage = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    const bool broken = errno == EBADF || errno == EINVAL || errno == ENOTSOCK || errno == EOPNOTSUPP;
    if (shortage || broken) loop_.forget(listener_.get(), *this);
    if (shortage) pause_.arm(kPause);
    return;
  }
}

void Acceptor::on_alarm() {
  if (!watch()) pause_.arm(kPause);
}

}  // namespace belljar::egress
