// Accepting on one listener, whatever becomes of the connections.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/fd.h"
#include "net/event_loop.h"

namespace belljar::egress {

// Hands each accepted socket (non-blocking, close-on-exec) to `take`. When descriptors or memory run out it pauses, so
// that a listener that stays readable does not spin. A listener that the kernel refuses for good ends in silence.
class Acceptor final : private net::Watcher, private net::Alarm {
 public:
  using Take = std::function<void(base::Fd)>;
  Acceptor(net::EventLoop& loop, base::Fd listener, Take take)
      : loop_(loop), listener_(std::move(listener)), take_(std::move(take)), pause_(loop, *this) {}
  ~Acceptor() override { loop_.forget(listener_.get(), *this); }

  [[nodiscard]] base::Status watch() { return loop_.watch(listener_.get(), EPOLLIN, *this); }

 private:
  static constexpr int kBurst = 32;  // accepts in a row before the connections at hand have their turn
  static constexpr std::chrono::milliseconds kPause{100};

  void on_events(uint32_t events) override;
  void on_alarm() override;

  net::EventLoop& loop_;
  base::Fd listener_;
  Take take_;
  net::Timer pause_;
};

}  // namespace belljar::egress
