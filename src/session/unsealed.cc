#include "session/unsealed.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <array>
#include <string>
#include <utility>

#include "base/clock.h"
#include "session/end.h"
#include "session/limits.h"
#include "session/signals.h"
#include "tiers/none/command.h"

namespace belljar::session {
namespace {

constexpr auto kGraceTime = std::chrono::seconds(2);  // between TERM and KILL
constexpr auto kPatience = std::chrono::seconds(5);   // for what does not end at once when killed

// Until the command itself has ended.
class Watch {
 public:
  Watch(const plan::Plan& plan, tiers::none::Command& command, const Signals& signals, base::BootAlarm alarm)
      : command_(command), signals_(signals), alarm_(std::move(alarm)) {
    if (plan.limits.wall_seconds) deadline_ = base::Deadline::after(std::chrono::seconds(*plan.limits.wall_seconds));
    alarm_.set(deadline_);
  }

  End run() {
    End end;
    end.exec_error = command_.exec_error();
    for (end.status = command_.reap(); end.status < 0 && !give_up_at_.passed(); end.status = command_.reap()) {
      wait_once(end);
    }
    return end;
  }

 private:
  void wait_once(End& end) {
    std::array<pollfd, 3> wait{
        {{command_.pidfd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}, {end.timed_out ? -1 : alarm_.fd(), POLLIN, 0}}};
    const base::Deadline& next = !give_up_at_.never() ? give_up_at_ : !kill_at_.never() ? kill_at_ : deadline_;
    if (::poll(wait.data(), wait.size(), next.poll_timeout()) > 0 && wait[1].revents != 0) {
      while (const auto signal = signals_.take_with_origin()) on_signal(*signal, end);
    }
    if (!end.timed_out && deadline_.passed()) {
      end.timed_out = true;
      stop(SIGTERM);
    }
    if (kill_at_.passed() && give_up_at_.never()) {
      command_.signal(SIGKILL);
      give_up_at_ = base::Deadline::after(kPatience);
    }
  }

  // The terminal signals its whole foreground group, and so the command, itself.
  void on_signal(const Signals::Origin& signal, End& end) {
    switch (signal.number) {
      case SIGPIPE:
      case SIGWINCH:
        break;
      case SIGTSTP:
        if (!signal.by_kernel) command_.signal(SIGTSTP);
        ::raise(SIGSTOP);
        break;
      case SIGTERM:
      case SIGHUP:
        end.told_to_end = true;
        stop(signal.number);
        break;
      default:
        if (!signal.by_kernel) command_.signal(signal.number);
    }
  }

  void stop(int signal) {
    command_.signal(signal);
    command_.signal(SIGCONT);
    if (kill_at_.never()) kill_at_ = base::Deadline::after(kGraceTime);
  }

  tiers::none::Command& command_;
  const Signals& signals_;
  base::BootAlarm alarm_;
  base::Deadline deadline_;
  base::Deadline kill_at_;
  base::Deadline give_up_at_;
};

}  // namespace

base::Status run_unsealed(const plan::Plan& plan, const RunOptions& options, const linux::CgroupGrounds& grounds,
                          Settlement& settlement) {
  const Signals signals;
  BELLJAR_ASSIGN(linux::Cgroup group, finish_group({}, plan, settlement.session, grounds));
  BELLJAR_ASSIGN(base::BootAlarm alarm, base::BootAlarm::create());
  BELLJAR_ASSIGN(tiers::none::Command command, tiers::none::Command::start(plan, options.closed, group));
  conclude(Watch(plan, command, signals, std::move(alarm)).run(), settlement);
  (void)group.kill();
  for (std::string& left : command.end_all(kPatience)) settlement.unreleased.push_back(std::move(left));
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  settle_limits(settlement, plan, group, used, -1);
  for (std::string& path : group.remove()) settlement.unreleased.push_back("cgroup " + std::move(path));
  return {};
}

}  // namespace belljar::session
