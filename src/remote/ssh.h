// The real ssh(1) as a child: keys, jump hosts, ports, known hosts and ControlMaster come from the person's own
// configuration.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "session/relay.h"

struct pollfd;

namespace belljar::remote {

// Of `ssh DESTINATION COMMAND`, with everything off by which the target could reach back: agent, X11, ports, tunnels,
// local commands, escapes.
[[nodiscard]] std::vector<std::string> ssh_arguments(std::string_view destination, std::string_view command);

// What an ssh of this configuration, as `ssh -G` prints it, does for others that share its connection (ssh_config(5),
// ControlMaster).
enum class Master {
  kUnknown,
  kNone,        // nothing
  kForeground,  // it goes on for them when its own session is over
  kPersistent,  // it leaves that to a process in the background
};
[[nodiscard]] Master master_of(std::string_view configuration);

// The patterns of variables that an ssh of this configuration sends to the target (ssh_config(5), SendEnv). All, when
// the configuration is empty: not known.
[[nodiscard]] std::vector<std::string> sent_names(std::string_view configuration);

// A running ssh. Ended (SIGTERM) and reaped when it goes; it also ends when the calling thread does. So it is never a
// master in the foreground, whose end would be that of others' sessions: it shares a connection, or has one of its own.
class Ssh {
 public:
  // Its variables are the caller's, without those that it would send. Its standard error is the caller's too; when that
  // is a terminal, ssh gets another, and what it or the target says comes through a filter while poll() or wait() is
  // called. Keys of the terminal (^C, ^Z) do not reach it: they are the command's.
  [[nodiscard]] static base::Result<Ssh> start(std::string_view destination, std::string_view command);
  Ssh() = default;
  Ssh(Ssh&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        master_(other.master_),
        words_(std::move(other.words_)),
        in_(std::move(other.in_)),
        out_(std::move(other.out_)) {}
  Ssh& operator=(Ssh&& other) noexcept;
  Ssh(const Ssh&) = delete;
  Ssh& operator=(const Ssh&) = delete;
  ~Ssh() { end(); }

  // Our ends of its standard input and output. Non-blocking.
  [[nodiscard]] base::Fd& in() { return in_; }
  [[nodiscard]] base::Fd& out() { return out_; }
  // As poll(2), at most 16 of them, for whoever waits for anything while ssh runs: what it says is not left lying.
  int poll(std::span<pollfd> wait, int timeout);
  // Waits for its end. The exit code; 255 is ssh's own failure.
  int wait();

 private:
  void end();

  pid_t pid_ = -1;
  Master master_ = Master::kUnknown;
  session::Relay words_;  // from the terminal that is its standard error; done when that is the caller's
  base::Fd in_;
  base::Fd out_;
};

// Runs a command to its end with `input`, and returns what it printed, at most 1 MiB. An error when ssh fails or the
// command does.
[[nodiscard]] base::Result<std::string> ssh_output(std::string_view destination, std::string_view command,
                                                   std::string_view input = {});

}  // namespace belljar::remote
