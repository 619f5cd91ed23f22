#include "remote/near_end.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/pair.h"
#include "remote/frame.h"
#include "remote/outbox.h"
#include "remote/target.h"
#include "session/signals.h"
#include "session/terminal.h"

namespace belljar::remote {
namespace {

using base::Deadline;
using session::Relay;

constexpr size_t kMaxPending = size_t{256} << 10U;  // of output that the caller does not take yet
constexpr size_t kMaxPreamble = size_t{256} << 10U;
constexpr uint32_t kMaxCode = 255;

std::unexpected<base::Error> lost(std::string_view destination, std::string_view how) {
  return base::refuse("run on the target", destination, how,
                      "what ran there is ended; what it had finished is in its folder");
}

class NearEnd {
 public:
  NearEnd(Ssh ssh, std::string_view destination, uint32_t closed, Deadline latest)
      : ssh_(std::move(ssh)), destination_(destination), closed_(closed), latest_(latest) {}

  base::Result<LinkEnd> run(LaunchOrder order, session::TerminalFilter::Options screen);

 private:
  base::Status open(LaunchOrder& order, session::TerminalFilter::Options screen);
  base::Status attach_terminal();
  void wait_once();
  void on_link();
  void on_frame(const Frame& frame);
  void on_signal(int signal);
  void on_input();
  void flush_output(size_t stream);
  void suspend();
  void drain();
  [[nodiscard]] bool room() const { return output_[1].size() + output_[2].size() < kMaxPending; }
  void send_window();
  void lose(std::string how);

  Ssh ssh_;
  std::string destination_;
  uint32_t closed_;
  Deadline latest_;
  session::Signals signals_;
  session::Channels channels_;
  session::RawTerminal raw_;
  base::Fd terminal_;  // stands for the guest's terminal: relays on its other end
  std::array<base::Fd, 3> ends_;
  std::array<Outbox, 3> output_;
  FrameReader frames_;
  Outbox to_far_;
  uint32_t credit_ = kInputCredit;
  std::chrono::seconds silence_{30};
  Deadline lost_;
  Deadline alive_;
  bool linked_ = true;
  bool ended_ = false;
  std::string how_ = "the link has ended before the command had";  // it was lost
  LinkEnd end_;
};

base::Status NearEnd::attach_terminal() {
  base::Fd far;
  BELLJAR_TRY(base::make_pair(SOCK_STREAM | SOCK_NONBLOCK, far, terminal_));
  const auto copy = [&] { return base::Fd(::fcntl(far.get(), F_DUPFD_CLOEXEC, 3)); };
  channels_.relays[0] = Relay(Relay::Role::kFromCaller, STDIN_FILENO, copy());
  channels_.relays[1] = Relay(Relay::Role::kToCaller, STDOUT_FILENO, copy(), std::move(channels_.own_screen));
  channels_.relays[1].set_filter(std::make_unique<session::TerminalFilter>(channels_.screen));
  ends_[0] = base::Fd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3));
  ends_[1] = base::Fd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3));
  terminal_.reset();
  return {};
}

base::Status NearEnd::open(LaunchOrder& order, session::TerminalFilter::Options screen) {
  BELLJAR_ASSIGN(channels_, session::open_channels(closed_, screen));
  if (channels_.terminal) BELLJAR_TRY(attach_terminal());
  for (size_t i = 0; i < ends_.size(); ++i) {
    if ((closed_ & (1U << i)) != 0) {
      order.streams[i] = StreamKind::kClosed;
    } else if (channels_.guest_ends[i]) {
      order.streams[i] = StreamKind::kPipe;
      ends_[i] = std::move(channels_.guest_ends[i]);
      make_nonblocking(ends_[i].get());
    } else if (channels_.terminal) {
      order.streams[i] = StreamKind::kTerminal;
    } else {
      order.one_stream = true;
    }
  }
  winsize size{};
  if (channels_.terminal && ::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) {
    order.rows = size.ws_row;
    order.columns = size.ws_col;
  }
  return {};
}

void NearEnd::send_window() {
  winsize size{};
  if (!channels_.terminal || ::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0) return;
  to_far_.add(window_frame(size.ws_row, size.ws_col));
}

void NearEnd::lose(std::string how) {
  linked_ = false;
  how_ = std::move(how);
}

// The launcher on the target has stopped itself, and so does this one, with the terminal as the shell left it.
void NearEnd::suspend() {
  raw_.restore();
  to_far_.add(frame(FrameType::kPause));
  (void)to_far_.flush(ssh_.in().get(), SIZE_MAX);
  signals_.stop_self();
  if (channels_.terminal) raw_.enter(STDIN_FILENO, &channels_.restorer);
  send_window();
  to_far_.add(frame(FrameType::kGoOn));
  lost_ = Deadline::after(silence_);
  latest_ = std::max(latest_, lost_);  // a launcher that was stopped ends at its deadline when it goes on
}

void NearEnd::on_frame(const Frame& frame) {
  switch (frame.type) {
    case FrameType::kCredit:
      credit_ += std::min(number_of(frame).value_or(0), kInputCredit - std::min(credit_, kInputCredit));
      break;
    case FrameType::kOutput:
      if (ends_[1]) output_[1].add(frame.payload);
      break;
    case FrameType::kError:
      if (ends_[2]) {
        output_[2].add(frame.payload);
      } else if (ends_[1]) {
        output_[1].add(frame.payload);
      }
      break;
    case FrameType::kStopped:
      suspend();
      break;
    case FrameType::kReport:
      end_.report += frame.payload;
      if (end_.report.size() > kMaxReport) lose("the target sends a report without end");
      break;
    case FrameType::kEnded: {
      const uint32_t code = number_of(frame).value_or(kMaxCode + 1);
      end_.code = static_cast<int>(code);
      ended_ = code <= kMaxCode;
      if (!ended_) lose("the target told an exit code that is none");
      break;
    }
    default:
      break;
  }
}

void NearEnd::on_link() {
  std::string bytes;
  if (!read_some(ssh_.out().get(), kChunk, bytes)) linked_ = false;
  frames_.feed(bytes);
  while (linked_ && !ended_) {
    const auto next = frames_.next();
    if (!next) break;
    on_frame(*next);
  }
  if (frames_.broken()) linked_ = false;
  lost_ = Deadline::after(silence_);
}

void NearEnd::on_signal(int signal) {
  if (signal == SIGWINCH) send_window();
  if (signal == SIGWINCH || signal == SIGPIPE || signal == SIGCONT) return;
  to_far_.add(frame(FrameType::kSignal, static_cast<uint32_t>(signal)));
}

void NearEnd::on_input() {
  std::string bytes;
  const bool open = read_some(ends_[0].get(), std::min<size_t>(kChunk, credit_), bytes);
  if (!bytes.empty()) {
    credit_ -= static_cast<uint32_t>(bytes.size());
    to_far_.add(frame(FrameType::kInput, bytes));
  }
  if (open) return;
  to_far_.add(frame(FrameType::kInputEnd));
  ends_[0].reset();
}

void NearEnd::flush_output(size_t stream) {
  if (output_[stream].flush(ends_[stream].get(), SIZE_MAX)) return;
  ends_[stream].reset();
  to_far_.add(frame(FrameType::kOutputClosed, static_cast<uint32_t>(stream)));
}

void NearEnd::wait_once() {
  std::array<pollfd, 12> wait{};
  wait[0] = {room() ? ssh_.out().get() : -1, POLLIN, 0};
  wait[1] = {to_far_.empty() ? -1 : ssh_.in().get(), POLLOUT, 0};
  wait[2] = {signals_.fd(), POLLIN, 0};
  wait[3] = {credit_ > 0 && to_far_.size() < kMaxPending ? ends_[0].get() : -1, POLLIN, 0};
  wait[4] = {output_[1].empty() ? -1 : ends_[1].get(), POLLOUT, 0};
  wait[5] = {output_[2].empty() ? -1 : ends_[2].get(), POLLOUT, 0};
  for (size_t i = 0; i < 3; ++i) channels_.relays[i].want(wait[6 + 2 * i], wait[7 + 2 * i]);
  if (!room()) lost_ = Deadline::after(silence_);  // it cannot be heard
  if (ssh_.poll(wait, std::min({alive_, lost_, latest_}).poll_timeout()) < 0) return;
  for (size_t i = 0; i < 3; ++i) channels_.relays[i].step(wait[6 + 2 * i], wait[7 + 2 * i]);
  if (wait[2].revents != 0) {
    while (const int signal = signals_.take()) on_signal(signal);
  }
  if (wait[3].revents != 0) on_input();
  if (wait[4].revents != 0) flush_output(1);
  if (wait[5].revents != 0) flush_output(2);
  if (wait[0].revents != 0) on_link();
  if (alive_.passed()) {
    to_far_.add(frame(FrameType::kAlive));
    alive_ = Deadline::after(silence_ / 3);
  }
  if (!to_far_.flush(ssh_.in().get(), SIZE_MAX)) linked_ = false;
  if (lost_.passed()) lose("the link was silent for " + std::to_string(silence_.count()) + " s: lost");
  if (latest_.passed() && room() && linked_ && !ended_) lose("its deadline has passed and the target has not ended it");
}

// What the command has written and the caller has not taken yet.
void NearEnd::drain() {
  for (;;) {
    for (const size_t stream : {size_t{1}, size_t{2}}) {
      if (!output_[stream].flush(ends_[stream].get(), SIZE_MAX) || output_[stream].empty()) ends_[stream].reset();
    }
    ends_[0].reset();
    if (channels_.relays[1].done() && channels_.relays[2].done()) return;
    std::array<pollfd, 7> wait{};
    wait[0] = {signals_.fd(), POLLIN, 0};
    wait[1] = {output_[1].empty() ? -1 : ends_[1].get(), POLLOUT, 0};
    wait[2] = {output_[2].empty() ? -1 : ends_[2].get(), POLLOUT, 0};
    for (size_t i = 1; i < 3; ++i) channels_.relays[i].want(wait[1 + 2 * i], wait[2 + 2 * i]);
    if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return;
    for (size_t i = 1; i < 3; ++i) channels_.relays[i].step(wait[1 + 2 * i], wait[2 + 2 * i]);
    while (const int signal = signals_.take()) {
      if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT) return;
    }
  }
}

base::Result<LinkEnd> NearEnd::run(LaunchOrder order, session::TerminalFilter::Options screen) {
  silence_ = std::chrono::seconds(order.link_seconds);
  BELLJAR_TRY(open(order, screen));
  const std::string bytes = pack(order);
  if (bytes.size() > kMaxPayload) {
    return base::refuse("run on the target", destination_, "command, policy and variables are larger than 1 MiB");
  }
  to_far_.add(frame(FrameType::kLaunch, bytes));
  lost_ = Deadline::after(silence_);
  alive_ = Deadline::after(silence_ / 3);
  if (channels_.terminal) raw_.enter(STDIN_FILENO, &channels_.restorer);
  while (linked_ && !ended_) wait_once();
  drain();
  raw_.restore();
  if (ended_) return std::move(end_);
  return lost(destination_, how_);
}

}  // namespace

base::Result<bool> await_far_end(Ssh& ssh, std::string_view destination) {
  std::string seen = "\n";
  while (seen.size() < kMaxPreamble) {
    pollfd wait{ssh.out().get(), POLLIN, 0};
    if (ssh.poll({&wait, 1}, -1) < 0 && errno != EINTR) break;
    // Byte by byte: what follows the mark is the link's.
    if (wait.revents != 0 && !read_some(ssh.out().get(), 1, seen)) break;
    if (seen.ends_with(kReadyMark)) return true;
    if (seen.ends_with(kMissingMark)) return false;
  }
  ssh.out().reset();
  const int code = ssh.wait();
  if (code == 127) return base::refuse("run ssh", destination, "no ssh is installed here", "install openssh-client");
  return base::refuse("reach the target", destination,
                      code == 255 ? "ssh could not" : "belljar did not start there (code " + std::to_string(code) + ")",
                      code == 255 ? "try: ssh " + std::string(destination) : "see 'belljar target check'");
}

base::Result<LinkEnd> serve_near_end(Ssh ssh, std::string_view destination, LaunchOrder order, uint32_t closed,
                                     session::TerminalFilter::Options screen, Deadline latest) {
  return NearEnd(std::move(ssh), destination, closed, latest).run(std::move(order), screen);
}

}  // namespace belljar::remote
