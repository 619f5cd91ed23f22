#include "tiers/jail/keeper.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/pair.h"
#include "base/reap.h"
#include "guest/protocol.h"
#include "linux/clone.h"
#include "linux/descriptor_passing.h"
#include "linux/user_namespace.h"
#include "plan/facts.h"

namespace belljar::tiers::jail {
namespace {

constexpr size_t kStackSize = 65536;

std::string hint_for(const Child& child) {
  const std::string_view operation = child.failed_operation;
  if (operation == "map the ids of") {
    return "its file system cannot be id-mapped: give the folder to an ordinary user and start belljar as that user";
  }
  if (operation == "mount the guest's proc" && child.failed_code == EPERM) {
    return "parts of /proc are masked here, as in most containers: see 'belljar doctor'";
  }
  if (child.failed_code == EPERM || child.failed_code == EACCES) return "see 'belljar doctor'";
  return {};
}

base::Error failure_of(const Child& child) {
  base::Error error;
  error.operation = child.failed_operation;
  error.subject = child.failed_subject;
  error.code = child.failed_code;
  error.hint = hint_for(child);
  return error;
}

}  // namespace

base::Result<std::unique_ptr<Keeper>> Keeper::start(const Foundation& foundation, int group) {
  std::unique_ptr<Keeper> out(new Keeper);
  out->group_ = group;
  BELLJAR_TRY(base::make_pair(SOCK_SEQPACKET, out->control_, out->guest_end_));
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  out->uid_map_ = uid + " " + uid + " 1";
  out->gid_map_ = gid + " " + gid + " 1";
  out->stack_ = std::make_unique_for_overwrite<char[]>(kStackSize);
  Child& child = out->child_;
  child.foundation = foundation;
  child.control = out->guest_end_.get();
  child.uid_map = out->uid_map_.c_str();
  child.gid_map = out->gid_map_.c_str();
  out->name_early_trees();
  BELLJAR_TRY(out->start_thread());
  return out;
}

base::Result<std::unique_ptr<Keeper>> Keeper::start(std::function<void()> begin) {
  std::unique_ptr<Keeper> out(new Keeper);
  out->begin_ = std::move(begin);
  BELLJAR_TRY(out->start_thread());
  return out;
}

// What nearly every plan binds as it is.
void Keeper::name_early_trees() {
  const auto& roots = plan::root_entry_names();
  const auto& devices = plan::device_names();
  for (const std::string_view path : roots) early_sources_.emplace_back(path);
  early_sources_.emplace_back("/sys/devices/system/cpu");
  const size_t folders = early_sources_.size();
  for (const std::string_view name : devices) early_sources_.push_back("/dev/" + std::string(name));
  for (size_t i = 0; i < early_sources_.size(); ++i) early_.push_back({early_sources_[i].c_str(), i >= folders});
  child_.early = early_;
}

base::Status Keeper::start_thread() {
  try {
    thread_ = std::thread(&Keeper::keep, this);
  } catch (const std::system_error& error) {
    return base::system_error("start a thread", "", error.code().value());
  }
  return {};
}

Keeper::~Keeper() {
  control_.reset();
  dismiss();
  if (thread_.joinable()) thread_.join();
  if (!pidfd_) return;
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  (void)base::reap(pid());
}

void Keeper::clone() {
  uint64_t flags = child_.foundation.namespaces | CLONE_VFORK;
  if (child_.foundation.privileged) flags &= ~uint64_t{CLONE_NEWUSER};
  int pidfd = -1;
  // setresuid() in the child clears the dumpable flag of the memory that both share (prctl(2), PR_SET_DUMPABLE).
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  pid_ = linux::clone_sharing_memory(flags, &pidfd, group_, stack_.get(), kStackSize, &run_child, &child_);
  if (dumpable == 1) ::prctl(PR_SET_DUMPABLE, 1);
  if (pid_ > 0) pidfd_.reset(pidfd);
  guest_end_.reset();
}

void Keeper::keep() {
  // Handlers of the launcher must not run in the child, which shares its memory; nor are they for this thread.
  sigset_t every;
  ::sigfillset(&every);
  ::pthread_sigmask(SIG_SETMASK, &every, nullptr);
  if (begin_) {
    begin_();
  } else {
    clone();
  }
  std::unique_lock lock(mutex_);
  cloned_ = true;
  changed_.notify_all();
  for (;;) {
    changed_.wait(lock, [&] { return leave_ || job_; });
    if (!job_) return;
    lock.unlock();
    job_();
    lock.lock();
    job_ = nullptr;
    changed_.notify_all();
  }
}

void Keeper::order(const std::array<int, Order::kCount>& descriptors) {
  const Order order{guest::kMagic};
  send_error_ =
      linux::send_with_descriptors(control_.get(), &order, sizeof order, descriptors.data(), descriptors.size());
}

void Keeper::lend(const std::array<int, Identities::kCount>& namespaces) {
  const Identities identities{guest::kMagic};
  const int error = linux::send_with_descriptors(control_.get(), &identities, sizeof identities, namespaces.data(),
                                                 namespaces.size());
  if (send_error_ == 0) send_error_ = error;
}

void Keeper::let_enter(std::span<const int> groups, int null) {
  std::array<int, Entries::kMost> descriptors{};
  descriptors.fill(null);
  const auto count = std::min(groups.size(), descriptors.size());
  std::copy_n(groups.begin(), count, descriptors.begin());
  const Entries entries{guest::kMagic, static_cast<uint32_t>(count)};
  const int error =
      linux::send_with_descriptors(control_.get(), &entries, sizeof entries, descriptors.data(), descriptors.size());
  if (send_error_ == 0) send_error_ = error;
}

base::Status Keeper::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return cloned_; });
  if (begin_) return {};
  if (pid_ < 0) {
    return base::system_error("make the guest's namespaces", "", static_cast<int>(-pid_),
                              linux::why_no_user_namespace(static_cast<int>(-pid_)));
  }
  if (child_.failed_operation != nullptr) return std::unexpected(failure_of(child_));
  // Last: it fails when the child has ended, and then the child's own word is the better one.
  if (send_error_ != 0) return base::system_error("order the guest", "", send_error_);
  return {};
}

void Keeper::run(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
  }
  changed_.notify_all();
}

void Keeper::dismiss() {
  {
    const std::lock_guard lock(mutex_);
    leave_ = true;
  }
  changed_.notify_all();
}

void Keeper::wait_for_job() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !job_; });
}

}  // namespace belljar::tiers::jail
