// Deadlines on the clock that neither a wall-clock jump nor a suspend can move.
#pragma once

#include <chrono>
#include <cstdint>

namespace belljar::base {

// CLOCK_BOOTTIME: monotonic, counts while the machine sleeps (clock_gettime(2), Linux 2.6.39).
[[nodiscard]] std::chrono::nanoseconds boot_now();

class Deadline {
 public:
  Deadline() = default;  // never
  static Deadline after(std::chrono::nanoseconds span) { return Deadline(boot_now() + span); }

  [[nodiscard]] bool never() const { return at_.count() == INT64_MAX; }
  [[nodiscard]] bool passed() const { return !never() && boot_now() >= at_; }
  // Milliseconds for poll(2): rounded up, 0 when passed, -1 for never.
  [[nodiscard]] int poll_timeout() const;
  [[nodiscard]] std::chrono::nanoseconds at() const { return at_; }

 private:
  explicit Deadline(std::chrono::nanoseconds at) : at_(at) {}
  std::chrono::nanoseconds at_{INT64_MAX};
};

}  // namespace belljar::base
