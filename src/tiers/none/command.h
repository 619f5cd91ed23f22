// The tier without a boundary: the command as the person's own shell would start it, and everything that it starts kept
// in view, so that it ends when the session does.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "linux/cgroup.h"
#include "plan/plan.h"

namespace belljar::tiers::none {

// The caller's process becomes the parent of all that loses its own (PR_SET_CHILD_SUBREAPER, Linux 3.4), for as long as
// the object lives; it must have one thread and no other children. The command shares the caller's descriptors 0, 1, 2,
// its terminal and its process group. It dies with the calling thread; what it has started then does not.
class Command {
 public:
  Command() = default;
  Command(Command&& other) noexcept;
  Command& operator=(Command&&) = delete;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();  // as end_all(), with 2 s of patience

  // Starts the plan's command, in `group` if that has any, under the resource limits that the plan names. Bit n of
  // `closed`: descriptor n of 0, 1, 2 is closed for it. A command that cannot be executed is no error: see
  // exec_error().
  [[nodiscard]] static base::Result<Command> start(const plan::Plan& plan, uint32_t closed, const linux::Cgroup& group);

  // Readable when the command has ended (pidfd_open(2), Linux 5.3).
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  // errno of executing it, or 0.
  [[nodiscard]] int exec_error() const { return exec_error_; }
  // Its wait status once it has ended, else -1. Collects whatever else has ended too.
  [[nodiscard]] int reap();
  void signal(int number) const;

  // Kills everything that is left, parents before the children that then become the caller's, until nothing is or
  // patience ends. What could not be ended is returned by pid and name.
  std::vector<std::string> end_all(std::chrono::milliseconds patience);

 private:
  pid_t pid_ = -1;
  base::Fd pidfd_;
  int exec_error_ = 0;
  int status_ = -1;
  bool reaper_ = false;
};

}  // namespace belljar::tiers::none
