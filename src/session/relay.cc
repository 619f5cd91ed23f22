#include "session/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace belljar::session {
namespace {

constexpr size_t kChunk = 65536;

// fstat(2) by the call of that name: glibc 2.33 to 2.38 goes through newfstatat(2), which can look at any path and is
// therefore out of a sealed launcher's reach.
bool look_at(int fd, struct stat& out) {
  return ::syscall(SYS_fstat, fd, &out) == 0;
}

bool is_pipe(int fd) {
  struct stat found{};
  return look_at(fd, found) && S_ISFIFO(found.st_mode);
}

bool would_wait(int code) {
  return code == EAGAIN || code == EINTR;
}

}  // namespace

base::Fd Relay::own_description(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return base::Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

Relay::Relay(Role role, int caller, base::Fd guest, base::Fd own)
    : role_(role), caller_(caller), guest_(std::move(guest)) {
  done_ = false;
  if (role_ == Role::kFromCaller) {
    splice_ = is_pipe(caller_) && is_pipe(guest_.get());
    return;
  }
  struct stat found{};
  if (!look_at(caller_, found)) {
    finish();
  } else if (S_ISFIFO(found.st_mode)) {
    target_kind_ = Kind::kPipe;
    splice_ = is_pipe(guest_.get());
    most_ = PIPE_BUF;  // what a writable pipe takes without blocking (pipe(7))
  } else if (S_ISSOCK(found.st_mode)) {
    target_kind_ = Kind::kSocket;
  } else if (::isatty(caller_) == 1) {
    own_target_ = own ? std::move(own) : own_description(caller_);
    if (!own_target_) most_ = 256;  // n_tty reports room only when at least so much is left (WAKEUP_CHARS)
  }
}

void Relay::set_filter(std::unique_ptr<TerminalFilter> filter) {
  filter_ = std::move(filter);
  splice_ = false;
}

void Relay::want(pollfd& read_side, pollfd& write_side) const {
  read_side = {-1, POLLIN, 0};
  write_side = {-1, POLLOUT, 0};
  if (done_) return;
  if (!pending_.empty() || target_full_) {
    write_side.fd = target();
    return;
  }
  read_side.fd = source();
  // A reader that is gone shows on the pipe to the guest without a write.
  if (role_ == Role::kFromCaller) write_side = {target(), 0, 0};
}

void Relay::step(const pollfd& read_side, const pollfd& write_side) {
  if (done_) return;
  if (write_side.fd >= 0 && (write_side.revents & POLLERR) != 0) return finish();
  const bool readable = read_side.fd >= 0 && read_side.revents != 0;
  const bool writable = write_side.fd >= 0 && (write_side.revents & (POLLOUT | POLLHUP)) != 0;
  if (splice_) {
    if (readable || writable) splice_some();
    return;
  }
  if (readable) read_some();
  if (!pending_.empty() && (readable || writable)) write_some();
}

void Relay::end_modes() {
  if (done_ || !filter_) return;
  filter_->end_modes(pending_);
  const base::Deadline deadline = base::Deadline::after(std::chrono::seconds(1));
  while (!done_ && !pending_.empty() && !deadline.passed()) {
    pollfd wait{target(), POLLOUT, 0};
    if (::poll(&wait, 1, deadline.poll_timeout()) > 0) write_some();
  }
}

void Relay::splice_some() {
  target_full_ = false;
  for (int round = 0; round < 16; ++round) {
    const ssize_t n = ::splice(source(), nullptr, target(), nullptr, kChunk, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0) continue;
    if (n == 0) return finish();
    if (!would_wait(errno)) return finish();
    // EAGAIN does not say which side: ask the source.
    pollfd source_ready{source(), POLLIN, 0};
    target_full_ = ::poll(&source_ready, 1, 0) > 0 && (source_ready.revents & POLLIN) != 0;
    return;
  }
}

void Relay::read_some() {
  std::array<char, kChunk> buffer;
  const ssize_t n = ::read(source(), buffer.data(), buffer.size());
  if (n > 0) {
    const std::string_view bytes(buffer.data(), static_cast<size_t>(n));
    pending_.clear();
    if (filter_) {
      filter_->filter(bytes, pending_);
    } else {
      pending_.assign(bytes);
    }
    return;
  }
  if (n < 0 && would_wait(errno)) return;
  // EIO is how a terminal says that its other side is closed.
  end_of_source();
}

void Relay::end_of_source() {
  ended_ = true;
  pending_.clear();
  if (filter_) filter_->close(pending_);
  if (pending_.empty()) finish();
}

ssize_t Relay::write_to_target(const char* data, size_t size) const {
  const size_t part = std::min(size, most_);
  if (role_ == Role::kToCaller && target_kind_ == Kind::kSocket) {
    return ::send(target(), data, part, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  return ::write(target(), data, part);
}

void Relay::write_some() {
  const ssize_t n = write_to_target(pending_.data(), pending_.size());
  if (n >= 0) {
    pending_.erase(0, static_cast<size_t>(n));
    if (ended_ && pending_.empty()) finish();
  } else if (!would_wait(errno)) {
    finish();
  }
}

void Relay::finish() {
  done_ = true;
  pending_.clear();
  // The guest sees the end of its input, or SIGPIPE on its output, as it would without a relay.
  guest_.reset();
  own_target_.reset();
}

}  // namespace belljar::session
