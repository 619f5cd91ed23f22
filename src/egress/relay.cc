#include "egress/relay.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace belljar::egress {
namespace {

// Bytes one direction may move before the other connections have their turn.
constexpr size_t kTurn = size_t{1} << 20U;

}  // namespace

PipePool::Pipe PipePool::take() {
  Pipe out;
  if (lent_ >= limit_) return out;
  if (!spare_.empty()) {
    out = std::move(spare_.back());
    spare_.pop_back();
  } else {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return out;
    out.out = base::Fd(ends[0]);
    out.in = base::Fd(ends[1]);
    // May be refused (/proc/sys/fs/pipe-user-pages-soft); the pipe then keeps its 64 KiB or less.
    ::fcntl(out.in.get(), F_SETPIPE_SZ, static_cast<int>(capacity()));
  }
  ++lent_;
  return out;
}

void PipePool::give(Pipe pipe) {
  --lent_;
  if (spare_.size() < kSpare) spare_.push_back(std::move(pipe));
}

void PipePool::discard(Pipe pipe) {
  --lent_;
  pipe = {};
}

Tunnel::Tunnel(Company& company, PipePool& pipes, std::unique_ptr<net::Stream> client,
               std::unique_ptr<net::Stream> upstream, std::unique_ptr<Grant> grant)
    : Member(company),
      pipes_(pipes),
      grant_(std::move(grant)),
      client_(std::move(client)),
      upstream_(std::move(upstream)) {
  up_.from = down_.to = client_.get();
  up_.to = down_.from = upstream_.get();
  client_->set_owner(*this);
  upstream_->set_owner(*this);
}

Tunnel::~Tunnel() {
  for (Direction* direction : {&up_, &down_}) {
    if (direction->held == 0) {
      put_back(*direction);
    } else {
      pipes_.discard(std::move(direction->pipe));
    }
  }
}

void Tunnel::start() {
  on_stream(*client_);
}

void Tunnel::on_stream(net::Stream& /*stream*/) {
  if (left()) return;
  bool alive = pump(up_) && pump(down_);
  // A side that has nothing more to say is not read any more, so a read cannot tell that it broke later.
  if (client_->broken() && up_.closed) alive = false;
  if (upstream_->broken() && down_.closed) alive = false;
  if (alive && !(up_.closed && down_.closed)) return;
  if (!alive) {
    client_->reset_on_close();
    upstream_->reset_on_close();
  }
  leave();
}

bool Tunnel::rules_changed(const Review& review) {
  if (left() || grant_ == nullptr || grant_->survives(review, upstream_.get())) return false;
  client_->reset_on_close();
  upstream_->reset_on_close();
  leave();
  return true;
}

bool Tunnel::pump(Direction& direction) {
  size_t moved = 0;
  while (!direction.closed) {
    const size_t before = direction.held;
    const Step step = direction.held > 0 ? flush(direction) : fill(direction);
    if (step == Step::kBroken) return false;
    if (step == Step::kWaits) break;
    moved += direction.held > before ? direction.held - before : 0;
    if (moved >= kTurn) {
      direction.from->again();
      break;
    }
  }
  if (direction.held == 0) put_back(direction);
  return true;
}

bool Tunnel::count(const Direction& direction, size_t bytes) {
  if (grant_ == nullptr) return true;
  return &direction == &up_ ? grant_->carried_up(bytes) : grant_->carried_down(bytes);
}

void Tunnel::put_back(Direction& direction) {
  if (direction.pipe.valid()) pipes_.give(std::exchange(direction.pipe, {}));
}

// From the pipe to the socket.
Tunnel::Step Tunnel::flush(Direction& direction) {
  if (!direction.to->writable()) return Step::kWaits;
  // When the end is known to follow, the last bytes wait for it and leave with the FIN in one segment.
  const unsigned more = direction.from->peer_ended() ? SPLICE_F_MORE : 0U;
  const ssize_t n = ::splice(direction.pipe.out.get(), nullptr, direction.to->fd(), nullptr, direction.held,
                             SPLICE_F_MOVE | SPLICE_F_NONBLOCK | more);
  if (n > 0) {
    direction.held -= static_cast<size_t>(n);
    return count(direction, static_cast<size_t>(n)) ? Step::kMoved : Step::kBroken;
  }
  if (n < 0 && errno == EINTR) return Step::kMoved;
  if (n < 0 && errno == EAGAIN) {
    direction.to->filled();
    return Step::kWaits;
  }
  return Step::kBroken;
}

// From the socket to an empty pipe. Nothing is taken that could not be passed on now: it waits in the kernel's socket
// buffer, where TCP holds the sender back, and not in a pipe.
Tunnel::Step Tunnel::fill(Direction& direction) {
  if (direction.ended) {
    // The last end is sent by the close of the socket, from which everything was read.
    if (!(&direction == &up_ ? down_ : up_).closed) direction.to->shutdown_write();
    direction.closed = true;
    return Step::kMoved;
  }
  if (!direction.from->readable() || !direction.to->writable()) return Step::kWaits;
  if (!direction.pipe.valid()) direction.pipe = pipes_.take();
  if (!direction.pipe.valid()) return copy(direction);
  const ssize_t n = ::splice(direction.from->fd(), nullptr, direction.pipe.in.get(), nullptr, PipePool::capacity(),
                             SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (n > 0) {
    direction.held = static_cast<size_t>(n);
    return Step::kMoved;
  }
  if (n == 0) {
    direction.ended = true;
    return Step::kMoved;
  }
  if (errno == EINTR) return Step::kMoved;
  if (errno == EAGAIN) {  // the pipe is empty, so it is the socket that has nothing
    direction.from->drained();
    return Step::kWaits;
  }
  return Step::kBroken;
}

// Without a pipe: looks at the bytes, sends what the other side takes, and only then takes them off.
Tunnel::Step Tunnel::copy(Direction& direction) {
  std::array<char, size_t{16} << 10U> buffer;
  const ssize_t seen = ::recv(direction.from->fd(), buffer.data(), buffer.size(), MSG_PEEK);
  if (seen == 0) {
    direction.ended = true;
    return Step::kMoved;
  }
  if (seen < 0) {
    if (errno == EINTR) return Step::kMoved;
    if (errno != EAGAIN) return Step::kBroken;
    direction.from->drained();
    return Step::kWaits;
  }
  const auto sent = direction.to->write({buffer.data(), static_cast<size_t>(seen)});
  if (sent.outcome == net::Stream::Outcome::kAgain) return Step::kWaits;
  if (sent.outcome != net::Stream::Outcome::kDone) return Step::kBroken;
  // MSG_TRUNC on TCP drops the bytes without copying them (tcp(7)).
  if (::recv(direction.from->fd(), nullptr, sent.bytes, MSG_TRUNC) != static_cast<ssize_t>(sent.bytes)) {
    return Step::kBroken;
  }
  if (!count(direction, sent.bytes)) return Step::kBroken;
  direction.from->again();  // and the others have their turn
  return Step::kWaits;
}

}  // namespace belljar::egress
