// The launcher's signals.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

#include "base/fd.h"

namespace belljar::session {

// Those that end or stop a launcher, or that it passes on, wait in this thread for as long as it lives.
class SignalsHeld {
 public:
  SignalsHeld() {
    ::sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT, SIGPIPE}) {
      ::sigaddset(&held_, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

  [[nodiscard]] const sigset_t& held() const { return held_; }

 private:
  sigset_t held_{};
  sigset_t before_{};
};

// The same as readable events.
class Signals {
 public:
  Signals()
      : fd_(::signalfd(-1, &held_.held(), SFD_CLOEXEC | SFD_NONBLOCK)),
        self_(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))) {}

  [[nodiscard]] int fd() const { return fd_.get(); }
  struct Origin {
    int number = 0;
    bool by_kernel = false;  // as by the terminal, which signals its whole foreground group (sigaction(2), SI_KERNEL)
  };
  [[nodiscard]] std::optional<Origin> take_with_origin() const {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    return Origin{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
  }
  // The next one, or 0.
  [[nodiscard]] int take() const {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != sizeof info) return 0;
    return static_cast<int>(info.ssi_signo);
  }
  // SIGSTOP to this process. raise(3) is out of a sealed launcher's reach, since it would reach every process.
  void stop_self() const { ::syscall(SYS_pidfd_send_signal, self_.get(), SIGSTOP, nullptr, 0); }

 private:
  SignalsHeld held_;
  base::Fd fd_;
  base::Fd self_;
};

}  // namespace belljar::session
