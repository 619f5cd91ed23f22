#include "remote/far_end.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "base/io.h"
#include "remote/frame.h"
#include "remote/outbox.h"

namespace belljar::remote {
namespace {

using base::Deadline;

constexpr auto kOrderTime = std::chrono::seconds(60);
constexpr auto kEndTime = std::chrono::seconds(10);
constexpr size_t kMaxOut = size_t{256} << 10U;  // then the command has to wait

class FarEnd {
 public:
  FarEnd(int in, int out) : in_(in), out_(out) {}

  base::Result<LaunchOrder> take_order();
  int run(const LaunchOrder& order, const RunOrder& run);

 private:
  void wait_once();
  void on_link();
  void on_frame(const Frame& frame);
  void on_output(size_t stream);
  void on_child();
  void end_link();
  void send_signal(int number) const;
  [[nodiscard]] bool outputs_done() const { return !command_.streams[1] && !command_.streams[2]; }
  void conclude();

  int in_;
  int out_;
  FrameReader frames_;
  Outbox to_near_;
  FarCommand command_;
  base::Fd children_;
  Outbox input_;
  bool input_ended_ = false;
  std::chrono::seconds silence_{30};
  Deadline lost_;
  Deadline alive_;
  Deadline kill_;
  bool linked_ = true;
  bool gone_ = false;
  int code_ = 125;
};

base::Result<LaunchOrder> FarEnd::take_order() {
  if (!base::write_all(out_, kReadyMark)) return base::refuse("answer the near end", "", "it is gone");
  const Deadline deadline = Deadline::after(kOrderTime);
  while (!deadline.passed()) {
    pollfd wait{in_, POLLIN, 0};
    if (::poll(&wait, 1, deadline.poll_timeout()) < 0) continue;
    std::string bytes;
    if (wait.revents != 0 && !read_some(in_, kChunk, bytes)) break;
    frames_.feed(bytes);
    if (const auto frame = frames_.next()) {
      if (frame->type != FrameType::kLaunch) break;
      return unpack_order(frame->payload);
    }
    if (frames_.broken()) break;
  }
  return base::refuse("take the launch order", "", "none came, refusing");
}

void FarEnd::send_signal(int number) const {
  if (!gone_) ::syscall(SYS_pidfd_send_signal, command_.pidfd.get(), number, nullptr, 0);
}

// The launcher ends its guest, and should it hang, its own death does.
void FarEnd::end_link() {
  if (!linked_) return;
  linked_ = false;
  for (base::Fd& stream : command_.streams) stream.reset();
  command_.terminal.reset();
  send_signal(SIGTERM);
  send_signal(SIGCONT);
  kill_ = Deadline::after(kEndTime);
}

void FarEnd::on_frame(const Frame& frame) {
  const uint32_t number = number_of(frame).value_or(0);
  switch (frame.type) {
    case FrameType::kInput:
      if (command_.streams[0]) input_.add(frame.payload);
      break;
    case FrameType::kInputEnd:
      input_ended_ = true;
      break;
    case FrameType::kOutputClosed:
      if (number == 1 || number == 2) command_.streams[number].reset();
      break;
    case FrameType::kSignal:
      if (number > 0 && number < 32 && number != SIGKILL && number != SIGSTOP) send_signal(static_cast<int>(number));
      break;
    case FrameType::kWindow:
      if (command_.terminal) {
        winsize size{};
        size.ws_row = static_cast<uint16_t>(number >> 16U);
        size.ws_col = static_cast<uint16_t>(number);
        ::ioctl(command_.terminal.get(), TIOCSWINSZ, &size);
      }
      break;
    case FrameType::kPause:
      lost_ = {};
      return;
    case FrameType::kGoOn:
      send_signal(SIGCONT);
      break;
    default:
      break;
  }
  if (!lost_.never()) lost_ = Deadline::after(silence_);
  if (frame.type == FrameType::kGoOn) lost_ = Deadline::after(silence_);
}

void FarEnd::on_link() {
  std::string bytes;
  const bool open = read_some(in_, kChunk, bytes);
  frames_.feed(bytes);
  while (const auto frame = frames_.next()) on_frame(*frame);
  if (!open || frames_.broken()) end_link();
}

void FarEnd::on_output(size_t stream) {
  std::string bytes;
  const bool open = read_some(command_.streams[stream].get(), kChunk, bytes);
  if (!bytes.empty()) to_near_.add(frame(stream == 2 ? FrameType::kError : FrameType::kOutput, bytes));
  if (!open) command_.streams[stream].reset();
}

void FarEnd::on_child() {
  signalfd_siginfo drop{};
  while (::read(children_.get(), &drop, sizeof drop) == sizeof drop) {
  }
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(command_.pid), &info, WEXITED | WSTOPPED | WNOHANG) == 0 &&
         info.si_pid == command_.pid) {
    if (info.si_code == CLD_STOPPED) {
      to_near_.add(frame(FrameType::kStopped));
    } else {
      gone_ = true;
      code_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
      return;
    }
    info = {};
  }
}

void FarEnd::wait_once() {
  if (input_ended_ && input_.empty() && !command_.terminal) command_.streams[0].reset();
  const bool room = to_near_.size() < kMaxOut;
  std::array<pollfd, 6> wait{};
  wait[0] = {linked_ ? in_ : -1, POLLIN, 0};
  wait[1] = {linked_ && !to_near_.empty() ? out_ : -1, POLLOUT, 0};
  wait[2] = {input_.empty() ? -1 : command_.streams[0].get(), POLLOUT, 0};
  wait[3] = {room ? command_.streams[1].get() : -1, POLLIN, 0};
  wait[4] = {room ? command_.streams[2].get() : -1, POLLIN, 0};
  wait[5] = {children_.get(), POLLIN, 0};
  int timeout = std::min({lost_, alive_, kill_}).poll_timeout();
  if (gone_ && outputs_done() && to_near_.empty()) timeout = 0;
  if (::poll(wait.data(), wait.size(), timeout) < 0) return;
  if (wait[5].revents != 0) on_child();
  if (wait[3].revents != 0) on_output(1);
  if (wait[4].revents != 0) on_output(2);
  if (wait[2].revents != 0) {
    if (!input_.flush(command_.streams[0].get(), SIZE_MAX)) command_.streams[0].reset();
    if (const size_t taken = input_.take_written(); taken > 0) {
      to_near_.add(frame(FrameType::kCredit, static_cast<uint32_t>(taken)));
    }
  }
  if (wait[0].revents != 0) on_link();
  if (linked_ && alive_.passed()) {
    to_near_.add(frame(FrameType::kAlive));
    alive_ = Deadline::after(silence_ / 3);
  }
  if (linked_ && !to_near_.flush(out_, SIZE_MAX)) end_link();
  if (linked_ && lost_.passed()) end_link();
  if (kill_.passed()) send_signal(SIGKILL);
}

void FarEnd::conclude() {
  if (command_.report) {
    ::lseek(command_.report.get(), 0, SEEK_SET);
    const auto text = base::read_to_end(command_.report.get(), kMaxReport, "the report");
    for (size_t at = 0; text && at < text->size(); at += kMaxPayload) {
      to_near_.add(frame(FrameType::kReport, std::string_view(*text).substr(at, kMaxPayload)));
    }
  }
  to_near_.add(frame(FrameType::kEnded, static_cast<uint32_t>(code_)));
  while (linked_ && !to_near_.empty()) wait_once();
}

int FarEnd::run(const LaunchOrder& order, const RunOrder& run) {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  ::sigaddset(&wanted, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &wanted, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  children_ = base::Fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  silence_ = std::chrono::seconds(std::max(order.link_seconds, 1U));
  auto command = start_far_command(order, run);
  make_nonblocking(in_);
  make_nonblocking(out_);
  if (!command) {
    to_near_.add(frame(FrameType::kError, "belljar: " + command.error().message() + "\n"));
    gone_ = true;
    conclude();
    return 1;
  }
  command_ = std::move(*command);
  lost_ = Deadline::after(silence_);
  alive_ = Deadline::after(silence_ / 3);
  // What came together with the order: nothing else may follow it for long.
  while (const auto frame = frames_.next()) on_frame(*frame);
  while (!gone_ || (linked_ && !outputs_done())) wait_once();
  kill_ = {};
  if (!linked_) return 1;
  conclude();
  return linked_ ? 0 : 1;
}

}  // namespace

int serve_far_end(int in, int out, const RunOrder& run) {
  FarEnd end(in, out);
  const auto order = end.take_order();
  if (!order) {
    std::fprintf(stderr, "belljar: %s\n", order.error().message().c_str());
    return 1;
  }
  return end.run(*order, run);
}

}  // namespace belljar::remote
