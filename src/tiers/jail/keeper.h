// The thread that a guest hangs on.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "tiers/jail/child.h"

namespace belljar::tiers::jail {

// Clones the guest on a thread of its own, so that the namespaces, the slowest part of a launch, come about while the
// plan is made. The child shares the launcher's memory, and that thread's storage and errno, while the thread sleeps;
// other threads run on. It waits for its order: should none come, or the launcher die, it ends without having started
// anything. The kernel ends the guest when the thread ends (prctl(2), PR_SET_PDEATHSIG), so the thread stays, and runs
// what it is given meanwhile.
class Keeper {
 public:
  // Returns at once; what goes wrong with the clone is told by wait(). `group` is a cgroup v2 folder that the child is
  // cloned into, or -1; it stays open until then.
  [[nodiscard]] static base::Result<std::unique_ptr<Keeper>> start(const Foundation& foundation, int group = -1);
  // A thread that runs `begin` instead, with all signals blocked: what that starts hangs on it by a parent-death signal
  // of its own. wait() waits for its end; there is nothing to order and nothing to take.
  [[nodiscard]] static base::Result<std::unique_ptr<Keeper>> start(std::function<void()> begin);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  // Waits for the thread. A child whose descriptor was not taken is killed.
  ~Keeper();

  [[nodiscard]] const Foundation& foundation() const { return child_.foundation; }
  // For the part of it that the order announces; the child does not look before.
  [[nodiscard]] Child& child() { return child_; }
  // Sends the order with its descriptors. The child's end is told by wait() alone.
  void order(const std::array<int, Order::kCount>& descriptors);
  // Sends what a child that root has cloned waits for next, once it can do no more without.
  void lend(const std::array<int, Identities::kCount>& namespaces);
  // Sends the descriptors by which the child enters cgroups, at most Entries::kMost; it waits for them before it
  // executes init. `null` stands for those that are not needed.
  void let_enter(std::span<const int> groups, int null);
  // Waits until init executes. An error says what went wrong in the child.
  [[nodiscard]] base::Status wait();
  // Where the child hands out what it makes.
  [[nodiscard]] int control() const { return control_.get(); }
  // Once, after wait().
  [[nodiscard]] base::Fd take_pidfd() { return std::move(pidfd_); }
  [[nodiscard]] base::Fd take_control() { return std::move(control_); }
  [[nodiscard]] pid_t pid() const { return static_cast<pid_t>(pid_); }

  // Has the thread run `job`, after wait(), one at a time.
  void run(std::function<void()> job);
  // Waits until it has.
  void wait_for_job();
  // Lets the thread end once its job is done, and with it a guest that has not ended yet.
  void dismiss();

 private:
  Keeper() = default;
  base::Status start_thread();
  void name_early_trees();
  void keep();
  void clone();

  Child child_;
  std::vector<std::string> early_sources_;
  std::vector<EarlyTree> early_;
  std::string uid_map_;
  std::string gid_map_;
  base::Fd control_;
  base::Fd guest_end_;
  base::Fd pidfd_;
  int64_t pid_ = -1;
  int group_ = -1;
  std::function<void()> begin_;
  int send_error_ = 0;
  std::unique_ptr<char[]> stack_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool cloned_ = false;
  bool leave_ = false;
  std::function<void()> job_;
  std::thread thread_;
};

}  // namespace belljar::tiers::jail
