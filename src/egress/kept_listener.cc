#include "egress/kept_listener.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <expected>

#include "net/stream.h"

namespace belljar::egress {
namespace {

std::unexpected<base::Error> keep_error(const char* operation, const net::Endpoint& at) {
  const int code = errno;
  return base::system_error(operation, at.text(), code);
}

// 1 or 0; -1 with errno.
int listens(const base::Fd& socket) {
  int out = 0;
  socklen_t length = sizeof out;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &out, &length) == 0 ? out : -1;
}

bool set_reuse(const base::Fd& socket, int on) {
  return ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
}

}  // namespace

base::Result<KeptListener> KeptListener::keep(base::Fd listener) {
  const int listening = listens(listener);
  if (listening < 0) return base::system_error("keep", "listener", errno);
  if (listening == 0) return base::refuse("keep", "listener", "the socket does not listen");
  BELLJAR_ASSIGN(const net::Endpoint at, net::local_endpoint(listener.get()));
  // What is accepted inherits it; without it listen(2) fails with EADDRINUSE for as long as one of these lives, in
  // FIN_WAIT2 and TIME_WAIT too (inet_csk_bind_conflict()).
  if (!set_reuse(listener, 1)) return keep_error("keep", at);
  return KeptListener(std::move(listener), at);
}

base::Result<base::Fd> KeptListener::share() const {
  base::Fd out(::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 0));
  if (!out) return keep_error("share", at_);
  return out;
}

base::Status KeptListener::shut() const {
  // Two sockets that have it may be bound to one address while neither listens: the guest must not take this one.
  if (!set_reuse(listener_, 0)) return keep_error("shut", at_);
  // Shut down once more, a socket that does not listen would keep that state, and what it accepts later would inherit
  // it: connections that are at their end when they begin (inet_shutdown()).
  if (listens(listener_) == 0) return {};
  if (::shutdown(listener_.get(), SHUT_RD) != 0) return keep_error("shut", at_);
  return {};
}

base::Status KeptListener::open() const {
  if (!set_reuse(listener_, 1) || ::listen(listener_.get(), SOMAXCONN) != 0) {
    return keep_error("listen", at_);
  }
  // A port that the kernel chose at bind(2) is given back with the shutdown, and another is chosen now.
  BELLJAR_ASSIGN(const net::Endpoint now, net::local_endpoint(listener_.get()));
  if (now.port == at_.port) return {};
  BELLJAR_TRY(shut());
  return base::refuse("listen", at_.text(), "the kernel gave another port", "name the port at bind(2)");
}

}  // namespace belljar::egress
