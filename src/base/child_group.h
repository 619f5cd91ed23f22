// A forked child that leads a group of processes.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/reap.h"

namespace belljar::base {

// The child has to make itself the leader too (setpgid(2)): whoever of both comes first has done it. While it is not
// reaped its number is its group's and nobody else's. What is left of the group is killed, and the child reaped, when
// the object goes.
class ChildGroup {
 public:
  explicit ChildGroup(pid_t leader) : leader_(leader) { (void)::setpgid(leader, leader); }
  ChildGroup(const ChildGroup&) = delete;
  ChildGroup& operator=(const ChildGroup&) = delete;
  ~ChildGroup() {
    if (leader_ <= 0) return;
    kill();
    (void)wait();
  }

  void kill() const {
    ::kill(-leader_, SIGKILL);
    ::kill(leader_, SIGKILL);
  }
  // Reaps the child: its exit code, or 128 and the signal that ended it. Once.
  int wait() {
    const int status = reap(leader_);
    leader_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t leader_;
};

}  // namespace belljar::base
