// How often something may happen: a bucket of tokens, full at first, refilled evenly.
#pragma once

#include <algorithm>
#include <chrono>

namespace belljar::egress {

class Bucket {
 public:
  // Takes one of at most `full` tokens, of which `per_second` come back; false when there is none. `now` is of the boot
  // clock.
  [[nodiscard]] bool take(std::chrono::nanoseconds now, double full, double per_second) {
    const double seconds = std::chrono::duration<double>(now - refilled_).count();
    tokens_ = tokens_ < 0 ? full : std::min(full, tokens_ + seconds * per_second);
    refilled_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  double tokens_ = -1;  // nobody has asked yet
  std::chrono::nanoseconds refilled_{};
};

}  // namespace belljar::egress
