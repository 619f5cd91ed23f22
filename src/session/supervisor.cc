#include "session/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>
#include "session/end.h"

namespace belljar::session {
namespace {

constexpr int kFailedCode = 125;

}  // namespace

void Supervisor::attach_terminal() {
  if (!terminal_) return;
  copy_window_size(STDIN_FILENO, terminal_.get());
  ::fcntl(terminal_.get(), F_SETFL, O_NONBLOCK);
  const auto copy = [&] { return base::Fd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)); };
  channels_.relays[0] = Relay(Relay::Role::kFromCaller, STDIN_FILENO, copy());
  channels_.relays[1] = Relay(Relay::Role::kToCaller, STDOUT_FILENO, copy(), std::move(channels_.own_screen));
  channels_.relays[1].set_filter(std::make_unique<TerminalFilter>(channels_.screen));
  raw_.enter(STDIN_FILENO, &channels_.restorer);
}

int Supervisor::timeout() const {
  const base::Deadline& next =
      kill_at_.never() || (!deadline_.never() && deadline_.at() < kill_at_.at() && !timed_out_) ? deadline_ : kill_at_;
  return timed_out_ && kill_at_.never() ? -1 : next.poll_timeout();
}

void Supervisor::end(int signal) {
  (void)guest_.send_signal(signal);
  if (kill_at_.never()) kill_at_ = base::Deadline::after(grace_);
}

void Supervisor::on_deadline() {
  if (!timed_out_ && deadline_.passed()) {
    timed_out_ = true;
    (void)guest_.send_signal(SIGCONT);
    end(SIGTERM);
  }
  if (kill_at_.passed()) {
    guest_.kill();
    gone_ = true;
  }
}

// The command has stopped itself (^Z): so does the launcher, with the terminal as the shell left it.
void Supervisor::suspend() {
  if (!terminal_) return;
  // The shell would not find the terminal as it left it.
  suspended_ = asking_;
  if (suspended_) return;
  channels_.relays[1].end_modes();
  raw_.restore();
  signals_.stop_self();
  raw_.enter(STDIN_FILENO, &channels_.restorer);
  copy_window_size(STDIN_FILENO, terminal_.get());
  (void)guest_.send_signal(SIGCONT);
}

void Supervisor::on_message() {
  auto message = guest_.receive();
  if (!message) {
    control_open_ = false;
    return;
  }
  switch (message->event) {
    case guest::GuestEvent::kStarted:
      started_ = true;
      break;
    case guest::GuestEvent::kExecFailed:
      exec_error_ = message->value;
      break;
    case guest::GuestEvent::kStopped:
      suspend();
      break;
    case guest::GuestEvent::kSocket:
      way_in_.give(guest_.take_socket());
      break;
    case guest::GuestEvent::kExited:
      status_ = message->value;
      // Init ends at once and the kernel ends the rest; should it not, we do.
      kill_at_ = base::Deadline::after(grace_);
      way_out_.begin_to_close();
      guest_.keeper().dismiss();
      break;
    default:
      break;
  }
}

void Supervisor::on_signal(int signal) {
  switch (signal) {
    case SIGWINCH:
      if (terminal_) copy_window_size(STDIN_FILENO, terminal_.get());
      break;
    case SIGPIPE:
      break;
    case SIGTSTP:
      (void)guest_.send_signal(SIGTSTP);
      if (!terminal_) signals_.stop_self();  // else once the command has stopped
      break;
    case SIGTERM:
    case SIGHUP:
      told_to_end_ = true;
      (void)guest_.send_signal(SIGCONT);
      end(signal);
      break;
    default:
      (void)guest_.send_signal(signal);
  }
}

// Nobody is left to do what the guest's end asks for, and this process has sealed itself: no more may be added.
void Supervisor::on_lost_settler() {
  lost_settler_ = true;
  guest_.kill();
  gone_ = true;
}

void Supervisor::wait_once() {
  std::array<pollfd, 13> wait{};
  for (pollfd& each : wait) each.fd = -1;
  wait[12] = {timed_out_ ? -1 : alarm_.fd(), POLLIN, 0};
  wait[11] = {asker_.fd(), POLLIN, 0};
  wait[10] = {audit_failed_ ? -1 : way_out_.audit_failure_fd(), POLLIN, 0};
  wait[0] = {control_open_ ? guest_.control() : -1, POLLIN, 0};
  wait[1] = {guest_.pidfd(), POLLIN, 0};
  wait[2] = {signals_.fd(), POLLIN, 0};
  wait[9] = {lost_settler_ ? -1 : settler_.fd(), POLLIN, 0};
  for (size_t i = 0; i < 3; ++i) {
    if (moves(channels_.relays[i])) channels_.relays[i].want(wait[3 + 2 * i], wait[4 + 2 * i]);
  }
  if (!started_) wait[3].fd = wait[4].fd = -1;
  const int ready = ::poll(wait.data(), wait.size(), timeout());
  if (ready < 0 && errno != EINTR) return;
  if (ready > 0) {
    for (size_t i = 0; i < 3; ++i) {
      if (moves(channels_.relays[i])) channels_.relays[i].step(wait[3 + 2 * i], wait[4 + 2 * i]);
    }
    if (wait[11].revents != 0) on_asker();
    hand_over();
    if (wait[0].revents != 0) on_message();
    if (wait[2].revents != 0) {
      while (const int signal = signals_.take()) on_signal(signal);
    }
    if (wait[9].revents != 0) on_lost_settler();
    // Last, so that what init said before it ended is heard.
    if (wait[1].revents != 0 && (wait[0].revents == 0 || !control_open_)) {
      guest_.kill();
      gone_ = true;
    }
  }
  if (wait[10].revents != 0) on_failed_audit();
  on_deadline();
}

// While a person is asked nothing is read from the terminal and nothing shown there, and a guest that wants to show
// more waits. What is half shown is shown to its end first: the rest of a sequence or a letter would be another one.
bool Supervisor::moves(const Relay& relay) const {
  return !asking_ || (handing_over_ && &relay != &channels_.relays[0] && relay.holds());
}

void Supervisor::hand_over() {
  if (!handing_over_ || channels_.relays[1].holds() || channels_.relays[2].holds()) return;
  handing_over_ = false;
  asker_.tell_taken();
}

void Supervisor::on_asker() {
  const Asker::Word word = asker_.hear();
  handing_over_ = word == Asker::Word::kTake;
  if (handing_over_) {
    asking_ = true;
  } else if (std::exchange(asking_, false)) {
    if (suspended_) suspend();
    redraw();
  }
}

// A program that fills the screen draws it anew when the size changes.
void Supervisor::redraw() const {
  winsize size{};
  if (!terminal_ || ::ioctl(terminal_.get(), TIOCGWINSZ, &size) != 0 || size.ws_row < 2) return;
  --size.ws_row;
  ::ioctl(terminal_.get(), TIOCSWINSZ, &size);
  copy_window_size(STDIN_FILENO, terminal_.get());
}

// The policy requires that every verdict is written down. Nothing new is allowed since; what is open ends with the
// guest.
void Supervisor::on_failed_audit() {
  audit_failed_ = true;
  (void)guest_.send_signal(SIGCONT);
  end(SIGTERM);
}

// What the guest wrote before it ended. Its ends are all closed, so this comes to an end by itself, unless the caller
// does not read: then a signal to end is heard.
void Supervisor::drain() {
  for (;;) {
    std::array<pollfd, 5> wait{};
    wait[0] = {signals_.fd(), POLLIN, 0};
    for (size_t i = 1; i < 3; ++i) channels_.relays[i].want(wait[2 * i - 1], wait[2 * i]);
    if (channels_.relays[1].done() && channels_.relays[2].done()) return;
    const int ready = ::poll(wait.data(), wait.size(), -1);
    if (ready < 0 && errno != EINTR) return;
    for (size_t i = 1; i < 3; ++i) channels_.relays[i].step(wait[2 * i - 1], wait[2 * i]);
    while (const int signal = signals_.take()) {
      if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT) return;
    }
  }
}

void Supervisor::conclude(Settlement& settlement) const {
  session::conclude(
      {.exec_error = exec_error_, .status = status_, .told_to_end = told_to_end_, .timed_out = timed_out_}, settlement);
  if (lost_settler_ && exec_error_ == 0) {
    settlement.reason = EndReason::kFailed;
    settlement.exit_code = kFailedCode;
    settlement.error = "the process that settles the session was ended by somebody, so the session was too";
  }
  if (audit_failed_ && exec_error_ == 0) {
    settlement.reason = EndReason::kFailed;
    settlement.exit_code = kFailedCode;
    settlement.error = "write the audit file: it takes nothing any more, and the policy requires it";
  }
}

void Supervisor::end_by(const base::Deadline& deadline) {
  if (deadline.never()) return;
  const std::chrono::nanoseconds left = std::max(std::chrono::nanoseconds(0), deadline.at() - base::boot_now());
  grace_ = std::min(grace_, left / 2);
  deadline_ = base::Deadline::after(left - grace_);
  alarm_.set(deadline_);
}

void Supervisor::run(Settlement& settlement) {
  attach_terminal();
  while (!gone_) wait_once();
  asker_.end();
  while (control_open_ && status_ < 0) on_message();
  terminal_.reset();
  drain();
  raw_.restore();
  conclude(settlement);
}

}  // namespace belljar::session
