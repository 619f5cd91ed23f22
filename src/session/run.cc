#include "session/run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "egress/proxy.h"
#include "plan/explain.h"
#include "plan/make_plan.h"
#include "session/relay.h"
#include "session/terminal.h"
#include "tiers/jail/launch.h"

namespace belljar::session {
namespace {

using tiers::jail::Guest;

constexpr auto kProbeTime = std::chrono::seconds(20);
constexpr auto kGraceTime = std::chrono::seconds(2);  // between TERM and KILL
constexpr int kDeadlineCode = 124;
constexpr int kFailedCode = 125;
constexpr int kNotExecutableCode = 126;
constexpr int kNotFoundCode = 127;

std::string random_id() {
  std::array<unsigned char, 8> bytes{};
  (void)!::getrandom(bytes.data(), bytes.size(), 0);
  std::string out;
  for (const unsigned char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

std::string utc_now() {
  const time_t now = std::time(nullptr);
  tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

// The guest's ends of 0, 1 and 2, and the launcher's relays for them.
struct Channels {
  tiers::jail::Stdio stdio;
  std::array<base::Fd, 3> guest_ends;
  std::array<Relay, 3> relays;
  bool terminal = false;
};

base::Status add_pipe(Channels& channels, int number) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_error("pipe", "", errno);
  base::Fd read_end(ends[0]);
  base::Fd write_end(ends[1]);
  const bool input = number == STDIN_FILENO;
  base::Fd& ours = input ? write_end : read_end;
  base::Fd& theirs = input ? read_end : write_end;
  // Only our end: the flag belongs to the end's own description, and programs expect blocking ones.
  if (::fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0) return base::system_error("fcntl", "pipe", errno);
  const auto index = static_cast<size_t>(number);
  channels.stdio.fds[index] = theirs.get();
  channels.guest_ends[index] = std::move(theirs);
  channels.relays[index] = Relay(input ? Relay::Role::kFromCaller : Relay::Role::kToCaller, number, std::move(ours));
  return {};
}

bool is_same_file(int one, int other) {
  struct stat first{};
  struct stat second{};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

base::Result<Channels> open_channels(uint32_t closed) {
  Channels out;
  out.terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if ((closed & (1U << static_cast<unsigned>(number))) != 0) {
      out.stdio.fds[static_cast<size_t>(number)] = number;  // a placeholder that the command never sees
    } else if (number == STDERR_FILENO && !out.terminal && is_same_file(STDOUT_FILENO, STDERR_FILENO)) {
      // `2>&1`: one pipe, so that what is written in turn arrives in turn.
      out.stdio.fds[STDERR_FILENO] = out.stdio.fds[STDOUT_FILENO];
    } else if (!out.terminal || ::isatty(number) != 1) {
      BELLJAR_TRY(add_pipe(out, number));
    }
  }
  return out;
}

// Signals as readable events, for as long as it lives.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&wanted_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT, SIGPIPE}) {
      ::sigaddset(&wanted_, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &wanted_, &before_);
    fd_ = base::Fd(::signalfd(-1, &wanted_, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~Signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  // The next one, or 0.
  [[nodiscard]] int take() const {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != sizeof info) return 0;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  sigset_t wanted_{};
  sigset_t before_{};
  base::Fd fd_;
};

// The proxy, on the guest's thread.
class WayOut {
 public:
  base::Status open(Guest& guest, base::Fd listener, const std::vector<policy::HostRule>& rules) {
    egress::Options options;
    options.rules = rules;
    BELLJAR_ASSIGN(proxy_, egress::Proxy::create(std::move(listener), std::move(options)));
    keeper_ = &guest.keeper();
    keeper_->run([proxy = proxy_.get()] { (void)proxy->run(); });
    return {};
  }
  // The guest is at its end; close() then has less to wait for.
  void begin_to_close() {
    if (keeper_ != nullptr) proxy_->stop();
  }
  void close(Settlement& settlement) {
    if (!stop()) return;
    settlement.denials = proxy_->denials();
    settlement.unlisted_denials = proxy_->unlisted_denials();
  }
  WayOut() = default;
  WayOut(const WayOut&) = delete;
  WayOut& operator=(const WayOut&) = delete;
  ~WayOut() { stop(); }

 private:
  bool stop() {
    if (keeper_ == nullptr) return false;
    proxy_->stop();
    std::exchange(keeper_, nullptr)->wait_for_job();
    return true;
  }
  tiers::jail::Keeper* keeper_ = nullptr;
  std::unique_ptr<egress::Proxy> proxy_;
};

// Watches over a released guest until it is gone.
class Supervisor {
 public:
  Supervisor(const plan::Plan& plan, Guest& guest, WayOut& way_out, Channels& channels, const Signals& signals)
      : guest_(guest), way_out_(way_out), channels_(channels), signals_(signals), terminal_(guest.take_terminal()) {
    if (plan.limits.wall_seconds) deadline_ = base::Deadline::after(std::chrono::seconds(*plan.limits.wall_seconds));
  }
  void run(Settlement& settlement);

 private:
  void attach_terminal();
  void wait_once();
  void on_message();
  void on_signal(int signal);
  void on_deadline();
  void suspend();
  void end(int signal);
  void drain();
  void conclude(Settlement& settlement) const;
  [[nodiscard]] int timeout() const;

  Guest& guest_;
  WayOut& way_out_;
  Channels& channels_;
  const Signals& signals_;
  base::Fd terminal_;
  RawTerminal raw_;
  base::Deadline deadline_;
  base::Deadline kill_at_;
  bool gone_ = false;
  bool timed_out_ = false;
  bool told_to_end_ = false;
  bool control_open_ = true;
  int exec_error_ = 0;
  int status_ = -1;  // wait status of the command, once init has told
};

void Supervisor::attach_terminal() {
  if (!terminal_) return;
  copy_window_size(STDIN_FILENO, terminal_.get());
  ::fcntl(terminal_.get(), F_SETFL, O_NONBLOCK);
  const auto copy = [&] { return base::Fd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)); };
  channels_.relays[0] = Relay(Relay::Role::kFromCaller, STDIN_FILENO, copy());
  channels_.relays[1] = Relay(Relay::Role::kToCaller, STDOUT_FILENO, copy());
  raw_.enter(STDIN_FILENO);
}

int Supervisor::timeout() const {
  const base::Deadline& next =
      kill_at_.never() || (!deadline_.never() && deadline_.at() < kill_at_.at() && !timed_out_) ? deadline_ : kill_at_;
  return timed_out_ && kill_at_.never() ? -1 : next.poll_timeout();
}

void Supervisor::end(int signal) {
  (void)guest_.send_signal(signal);
  if (kill_at_.never()) kill_at_ = base::Deadline::after(kGraceTime);
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
  raw_.restore();
  ::raise(SIGSTOP);
  raw_.enter(STDIN_FILENO);
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
    case guest::GuestEvent::kExecFailed:
      exec_error_ = message->value;
      break;
    case guest::GuestEvent::kStopped:
      suspend();
      break;
    case guest::GuestEvent::kExited:
      status_ = message->value;
      // Init ends at once and the kernel ends the rest; should it not, we do.
      kill_at_ = base::Deadline::after(kGraceTime);
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
      ::raise(SIGSTOP);
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

void Supervisor::wait_once() {
  std::array<pollfd, 9> wait{};
  wait[0] = {control_open_ ? guest_.control() : -1, POLLIN, 0};
  wait[1] = {guest_.pidfd(), POLLIN, 0};
  wait[2] = {signals_.fd(), POLLIN, 0};
  for (size_t i = 0; i < 3; ++i) channels_.relays[i].want(wait[3 + 2 * i], wait[4 + 2 * i]);
  const int ready = ::poll(wait.data(), wait.size(), timeout());
  if (ready < 0 && errno != EINTR) return;
  if (ready > 0) {
    for (size_t i = 0; i < 3; ++i) channels_.relays[i].step(wait[3 + 2 * i], wait[4 + 2 * i]);
    if (wait[0].revents != 0) on_message();
    if (wait[2].revents != 0) {
      while (const int signal = signals_.take()) on_signal(signal);
    }
    // Last, so that what init said before it ended is heard.
    if (wait[1].revents != 0 && (wait[0].revents == 0 || !control_open_)) {
      guest_.kill();
      gone_ = true;
    }
  }
  on_deadline();
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
  settlement.exit_code = kFailedCode;
  settlement.reason = EndReason::kFailed;
  if (exec_error_ != 0) {
    const bool missing = exec_error_ == ENOENT || exec_error_ == ENOTDIR;
    settlement.reason = missing ? EndReason::kNotFound : EndReason::kNotExecutable;
    settlement.exit_code = missing ? kNotFoundCode : kNotExecutableCode;
    return;
  }
  if (status_ >= 0 && WIFEXITED(status_)) {
    settlement.reason = EndReason::kExited;
    settlement.exit_code = WEXITSTATUS(status_);
  } else if (status_ >= 0 && WIFSIGNALED(status_)) {
    settlement.reason = EndReason::kSignaled;
    settlement.signal = WTERMSIG(status_);
    settlement.exit_code = 128 + settlement.signal;
  } else if (told_to_end_) {
    settlement.reason = EndReason::kStopped;
    settlement.signal = SIGKILL;
    settlement.exit_code = 128 + SIGKILL;
  }
  if (timed_out_) {
    settlement.reason = EndReason::kDeadline;
    settlement.exit_code = kDeadlineCode;
  }
}

void Supervisor::run(Settlement& settlement) {
  attach_terminal();
  while (!gone_) wait_once();
  while (control_open_ && status_ < 0) on_message();
  terminal_.reset();
  drain();
  raw_.restore();
  conclude(settlement);
}

}  // namespace

HeadStart begin(const policy::Policy& policy) {
  if (policy.isolation.mode != policy::Mode::kJail) return {};
  const bool isolated = policy.isolation.network == policy::Network::kDeny;
  const auto foundation = tiers::jail::foundation_of(isolated ? plan::kProxyPort : uint16_t{0}, ::geteuid() == 0);
  auto keeper = tiers::jail::Keeper::start(foundation);
  return keeper ? std::move(*keeper) : nullptr;
}

base::Result<Settlement> run(const plan::Plan& plan, const RunOptions& options, HeadStart head) {
  if (plan.mode != policy::Mode::kJail) {
    return base::refuse("start a session in mode", plan::to_text(plan.mode),
                        "this version can plan it but not start it, refusing", "use mode jail");
  }
  const auto started = base::boot_now();
  Settlement settlement;
  settlement.session = random_id();
  settlement.started = utc_now();
  BELLJAR_ASSIGN(auto prepared, tiers::jail::prepare(plan, options.guest_path));
  const mode_t mask = ::umask(022);
  ::umask(mask);
  prepared.config.umask = mask;
  prepared.config.closed = options.closed;
  const Signals signals;
  BELLJAR_ASSIGN(Channels channels, open_channels(options.closed));
  BELLJAR_ASSIGN(Guest guest, head ? tiers::jail::start(prepared, channels.stdio, std::move(head))
                                   : tiers::jail::start(prepared, channels.stdio));
  for (base::Fd& end : channels.guest_ends) end.reset();
  WayOut way_out;
  if (base::Fd listener = guest.take_listener()) BELLJAR_TRY(way_out.open(guest, std::move(listener), plan.hosts));
  BELLJAR_ASSIGN(settlement.evidence, guest.prove(base::Deadline::after(kProbeTime)));
  if (options.proved) options.proved(settlement.evidence);
  if (!options.release) {
    guest.kill();
    settlement.reason = EndReason::kExited;
    settlement.exit_code = 0;
    return settlement;
  }
  BELLJAR_TRY(guest.release());
  Supervisor(plan, guest, way_out, channels, signals).run(settlement);
  way_out.close(settlement);
  settlement.duration = base::boot_now() - started;
  return settlement;
}

}  // namespace belljar::session
