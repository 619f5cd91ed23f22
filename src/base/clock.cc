#include "base/clock.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
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

Result<BootAlarm> BootAlarm::create() {
  Fd fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!fd) return system_error("timerfd_create", "", errno);
  return BootAlarm(std::move(fd));
}

void BootAlarm::set(const Deadline& deadline) const {
  if (!fd_ || deadline.never()) return;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(deadline.at());
  itimerspec when{};
  when.it_value = {seconds.count(), (deadline.at() - seconds).count()};
  ::timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace belljar::base
