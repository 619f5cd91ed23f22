// Deadlines on the clock that neither a wall-clock jump nor a suspend can move.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::base {

// CLOCK_BOOTTIME: monotonic, counts while the machine sleeps (clock_gettime(2), Linux 2.6.39).
[[nodiscard]] std::chrono::nanoseconds boot_now();

class Deadline {
 public:
  Deadline() = default;  // never
  static Deadline after(std::chrono::nanoseconds span) { return Deadline(boot_now() + span); }

  [[nodiscard]] bool never() const { return at_.count() == INT64_MAX; }
  [[nodiscard]] bool passed() const { return !never() && boot_now() >= at_; }
  // Milliseconds for poll(2): rounded up, 0 when passed, -1 for never. poll(2) sleeps on CLOCK_MONOTONIC: after a
  // suspend it waits for what was left, unless something else wakes it, such as a BootAlarm.
  [[nodiscard]] int poll_timeout() const;
  [[nodiscard]] std::chrono::nanoseconds at() const { return at_; }
  // The less is the earlier; never is the latest.
  auto operator<=>(const Deadline&) const = default;

 private:
  explicit Deadline(std::chrono::nanoseconds at) : at_(at) {}
  std::chrono::nanoseconds at_{INT64_MAX};
};

// Wakes poll(2) once a deadline has passed, also one that passed while the machine slept.
class BootAlarm {
 public:
  // None: never wakes.
  BootAlarm() = default;
  // Costs a descriptor (timerfd_create(2)).
  static Result<BootAlarm> create();
  void set(const Deadline& deadline) const;
  // Readable from the deadline on; -1 for none. Stays this object's.
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  explicit BootAlarm(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace belljar::base
