// The real ssh(1) as a child: keys, jump hosts, ports, known hosts and ControlMaster come from the person's own
// configuration.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

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

// A running ssh. Ended (SIGTERM) and reaped when it goes; it also ends when the calling thread does. So it is never a
// master in the foreground, whose end would be that of others' sessions: it shares a connection, or has one of its own.
class Ssh {
 public:
  // Its standard error is the caller's. Keys of the terminal (^C, ^Z) do not reach it: they are the command's.
  [[nodiscard]] static base::Result<Ssh> start(std::string_view destination, std::string_view command);
  Ssh() = default;
  Ssh(Ssh&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        master_(other.master_),
        in_(std::move(other.in_)),
        out_(std::move(other.out_)) {}
  Ssh& operator=(Ssh&& other) noexcept;
  Ssh(const Ssh&) = delete;
  Ssh& operator=(const Ssh&) = delete;
  ~Ssh() { end(); }

  // Our ends of its standard input and output. Blocking.
  [[nodiscard]] base::Fd& in() { return in_; }
  [[nodiscard]] base::Fd& out() { return out_; }
  // Waits for its end. The exit code; 255 is ssh's own failure.
  int wait();

 private:
  void end();

  pid_t pid_ = -1;
  Master master_ = Master::kUnknown;
  base::Fd in_;
  base::Fd out_;
};

// Runs a command to its end with `input`, and returns what it printed, at most 1 MiB. An error when ssh fails or the
// command does.
[[nodiscard]] base::Result<std::string> ssh_output(std::string_view destination, std::string_view command,
                                                   std::string_view input = {});

}  // namespace belljar::remote
