// Two streams joined: what one sends the other gets, moved inside the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "egress/journal.h"
#include "egress/member.h"
#include "net/event_loop.h"
#include "net/stream.h"

namespace belljar::egress {

// Pipes for splice(2), lent out while bytes are in them. At most `limit` exist at a time, so that a guest with many
// stuck tunnels cannot eat the descriptors; who gets none copies instead.
class PipePool {
 public:
  struct Pipe {
    base::Fd out;  // read end
    base::Fd in;   // write end
    [[nodiscard]] bool valid() const { return out.valid(); }
  };
  explicit PipePool(size_t limit) : limit_(limit) {}

  // An empty pipe, or an invalid one when there is none to have.
  Pipe take();
  // Takes back an empty pipe.
  void give(Pipe pipe);
  // A pipe that still holds bytes: destroyed, so that they reach nobody else.
  void discard(Pipe pipe);
  [[nodiscard]] size_t lent() const { return lent_; }
  [[nodiscard]] static size_t capacity() { return size_t{256} << 10U; }

 private:
  static constexpr size_t kSpare = 32;
  size_t limit_;
  size_t lent_ = 0;
  std::vector<Pipe> spare_;
};

// Relays until both directions ended or one side broke. An end of stream is passed on as such and the other direction
// goes on. A reset is passed on as a reset. No time limit: a silent tunnel lives as long as both ends keep it, and
// then holds two sockets, this object and nothing else.
class Tunnel final : public Member, private net::StreamOwner {
 public:
  // Without a grant nothing is counted.
  Tunnel(Company& company, PipePool& pipes, std::unique_ptr<net::Stream> client, std::unique_ptr<net::Stream> upstream,
         std::unique_ptr<Grant> grant = {});
  ~Tunnel() override;

  // Starts with what the kernel may already have for either side.
  void start();

 private:
  struct Direction {
    net::Stream* from = nullptr;
    net::Stream* to = nullptr;
    PipePool::Pipe pipe;
    size_t held = 0;      // bytes in the pipe
    bool ended = false;   // `from` has sent its end
    bool closed = false;  // and it was passed on
  };
  enum class Step : uint8_t { kMoved, kWaits, kBroken };

  void on_stream(net::Stream& stream) override;
  bool rules_changed(const Review& review) override;
  bool pump(Direction& direction);
  Step flush(Direction& direction);
  Step fill(Direction& direction);
  Step copy(Direction& direction);
  void put_back(Direction& direction);

  // Counts what `direction` passed on; false when it is to be cut.
  bool count(const Direction& direction, size_t bytes);

  PipePool& pipes_;
  std::unique_ptr<Grant> grant_;
  std::unique_ptr<net::Stream> client_;
  std::unique_ptr<net::Stream> upstream_;
  Direction up_;
  Direction down_;
};

}  // namespace belljar::egress
