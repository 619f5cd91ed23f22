#include "base/clock.h"

#include <algorithm>
#include <climits>
#include <ctime>

namespace belljar::base {

std::chrono::nanoseconds boot_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

int Deadline::poll_timeout() const {
  if (never()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - boot_now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
}

}  // namespace belljar::base
