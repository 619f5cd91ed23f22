// A non-blocking TCP socket on an event loop, registered once and edge-triggered.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "net/address.h"
#include "net/event_loop.h"

namespace belljar::net {

class Stream;

// Told that a stream may have become readable, writable or broken. Tries and sees EAGAIN.
class StreamOwner {
 public:
  virtual void on_stream(Stream& stream) = 0;

 protected:
  ~StreamOwner() = default;
};

// Remembers what the kernel last said, so that whoever owns the stream later (a stream changes hands from request to
// tunnel without a system call) starts from the truth: edges are not repeated (epoll(7)).
class Stream final : public Watcher {
 public:
  // Takes a connected or connecting socket that is already O_NONBLOCK.
  static base::Result<std::unique_ptr<Stream>> open(EventLoop& loop, base::Fd fd, StreamOwner& owner);
  ~Stream() override;

  void set_owner(StreamOwner& owner) { owner_ = &owner; }
  // Has the owner called in the next round of the loop.
  void again() { loop_.again(*this); }

  // False once a read found nothing, until the kernel reports more. Likewise for writing.
  [[nodiscard]] bool readable() const { return readable_; }
  [[nodiscard]] bool writable() const { return writable_; }
  void drained() { readable_ = false; }
  void filled() { writable_ = false; }
  // The peer reset the connection or it timed out: EPOLLERR was seen.
  [[nodiscard]] bool broken() const { return broken_; }

  enum class Outcome : uint8_t { kDone, kAgain, kEnd, kBroken };
  struct Transfer {
    Outcome outcome;
    size_t bytes;
  };
  // One recv(2) or send(2). kDone with bytes > 0; kEnd at the peer's end of stream. Keeps the flags above; a short
  // read says as much as EAGAIN (epoll(7)), unless the peer's end is already known to be behind it.
  Transfer read(char* data, size_t size);
  // The same, onto the end of `text`.
  Transfer read_onto(std::string& text, size_t size);
  // With `more`, data or an end follows at once, and both may leave in one segment (MSG_MORE, send(2)).
  Transfer write(std::string_view data, bool more = false);

  // The peer's end of stream has arrived; bytes before it may still be unread.
  [[nodiscard]] bool peer_ended() const { return peer_ended_; }

  // SO_ERROR of a connecting socket: 0 once connected.
  [[nodiscard]] int connect_error() const;
  void shutdown_write();
  // The close that follows sends RST, not FIN (SO_LINGER with 0, socket(7)).
  void reset_on_close();
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  Stream(EventLoop& loop, base::Fd fd, StreamOwner& owner) : loop_(loop), fd_(std::move(fd)), owner_(&owner) {}
  void on_events(uint32_t events) override;

  EventLoop& loop_;
  base::Fd fd_;
  StreamOwner* owner_;
  bool readable_ = false;
  bool writable_ = false;
  bool broken_ = false;
  bool peer_ended_ = false;
};

// A non-blocking socket with connect(2) under way. Returns the errno of an immediate failure as an Error's code.
base::Result<base::Fd> start_connect(const Endpoint& to);

// The local or remote address of a socket.
base::Result<Endpoint> local_endpoint(int fd);
base::Result<Endpoint> remote_endpoint(int fd);

}  // namespace belljar::net
