// Bytes between a descriptor of the caller's and one of the guest's, in one direction, without ever blocking.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/fd.h"
#include "session/terminal_filter.h"

struct pollfd;

namespace belljar::session {

// The guest never gets the caller's own files, sockets or terminals as 0, 1 and 2: an inherited log file could be read
// back and a terminal be typed into. It gets pipes or a terminal of Belljar's, and relays carry the bytes.
class Relay {
 public:
  enum class Role : uint8_t { kFromCaller, kToCaller };

  Relay() = default;
  // `guest` is Belljar's own end and non-blocking; `caller` stays the caller's. With kFromCaller bytes go from the
  // caller to the guest. A `guest` that is shared with another relay (a terminal) is duplicated by whoever makes both.
  // `own` is an own_description() of the caller's; without one it is opened here when there is need.
  Relay(Role role, int caller, base::Fd guest, base::Fd own = {});

  // The terminal `fd`, opened anew for writing: O_NONBLOCK belongs to the open file description, and the caller's shell
  // shares the caller's. Empty when it cannot be.
  [[nodiscard]] static base::Fd own_description(int fd);

  // What is read passes this filter from now on, and its close() comes after the last byte. Before the first step().
  void set_filter(std::unique_ptr<TerminalFilter> filter);

  // What poll(2) shall watch for. An unused entry has fd -1.
  void want(pollfd& read_side, pollfd& write_side) const;
  // Moves what can be moved now.
  void step(const pollfd& read_side, const pollfd& write_side);

  // Something was read and is not yet written.
  [[nodiscard]] bool holds() const { return !pending_.empty(); }
  // Writes, for a second at most, what is held and what ends each mode that the guest has left on in the terminal.
  void end_modes();

  // Everything was delivered, or one side is gone.
  [[nodiscard]] bool done() const { return done_; }

 private:
  enum class Kind : uint8_t { kPipe, kSocket, kOther };

  [[nodiscard]] int source() const { return role_ == Role::kFromCaller ? caller_ : guest_.get(); }
  [[nodiscard]] int target() const {
    if (role_ == Role::kFromCaller) return guest_.get();
    return own_target_ ? own_target_.get() : caller_;
  }
  void read_some();
  void write_some();
  void splice_some();
  void end_of_source();
  void finish();
  [[nodiscard]] ssize_t write_to_target(const char* data, size_t size) const;

  Role role_ = Role::kToCaller;
  int caller_ = -1;
  base::Fd guest_;
  base::Fd own_target_;  // a description of the caller's terminal of our own, so that it can be non-blocking
  Kind target_kind_ = Kind::kOther;
  size_t most_ = 65536;  // bytes of one write that cannot block
  bool splice_ = false;  // both ends are pipes
  bool target_full_ = false;
  bool ended_ = false;  // the source is read to its end, but not all is written
  bool done_ = true;
  std::unique_ptr<TerminalFilter> filter_;
  std::string pending_;
};

}  // namespace belljar::session
