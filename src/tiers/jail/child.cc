#include "tiers/jail/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>

#include "base/text.h"
#include "guest/protocol.h"
#include "linux/descriptor_passing.h"
#include "linux/local_route.h"
#include "linux/loopback.h"
#include "linux/tcp_redirect.h"
#include "tiers/jail/child_files.h"

namespace belljar::tiers::jail {
namespace {

bool write_text(int folder, const char* path, const char* text) {
  const int fd = ::openat(folder, path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool good = ::write(fd, text, std::strlen(text)) == static_cast<ssize_t>(std::strlen(text));
  const int code = errno;
  ::close(fd);
  errno = code;
  return good;
}

class Run : ChildPart {
 public:
  explicit Run(Child& child) : ChildPart(child), files_(child) {}
  // Each returns true to go on; false with the failure noted.
  bool all();

 private:
  bool arm_death_signal();
  bool map_ids();
  bool found();
  bool take_order();
  bool take_identities();
  bool enter_groups();
  bool build();
  bool hand_out(int descriptor, const char* what);
  bool make_network();
  bool make_transparent();
  bool drop_privilege();
  bool share_watches(const char* whole, const char* own);
  bool set_ids();
  bool place_descriptors();
  bool execute();

  Files files_;
  const Program* program_ = nullptr;        // from the order on
  std::array<int, Order::kCount> given_{};  // descriptors that came with it
  std::array<int, Identities::kCount> identities_{-1, -1};
  int guest_ = -1;  // belljar-guest
};

bool Run::arm_death_signal() {
  if (base_.death_signal && ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
    return fail("set the parent-death signal", "", errno);
  }
  // The launcher may have died before the signal was armed: then its end of the socket is closed. getppid() would not
  // tell, it is 0 for every parent outside the pid namespace.
  pollfd control{child_.control, POLLIN, 0};
  if (::poll(&control, 1, 0) > 0 && (control.revents & (POLLHUP | POLLERR)) != 0) {
    return fail("start the guest", "", ESRCH);
  }
  return true;
}

bool Run::map_ids() {
  if (base_.privileged) return true;
  // Needed before gid_map by a process without CAP_SETGID in the parent namespace (user_namespaces(7)).
  return check(write_text(AT_FDCWD, "/proc/self/setgroups", "deny"), "forbid setgroups", "") &&
         check(write_text(AT_FDCWD, "/proc/self/uid_map", child_.uid_map), "map the user id", child_.uid_map) &&
         check(write_text(AT_FDCWD, "/proc/self/gid_map", child_.gid_map), "map the group id", child_.gid_map);
}

bool Run::hand_out(int descriptor, const char* what) {
  const uint32_t tag = guest::kMagic;
  const int error = linux::send_with_descriptor(child_.control, &tag, sizeof tag, descriptor);
  return error == 0 || fail(what, "", error);
}

bool Run::make_network() {
  if (base_.proxy_port == 0) return true;
  if (base_.loopback) {
    const int error = linux::bring_up_loopback();
    if (error != 0) return fail("bring up", "lo", error);
  }
  if (!base_.listener) return true;
  int listener = -1;
  const int error = linux::listen_on_loopback(base_.proxy_port, listener);
  if (error != 0) return fail("listen on the guest's loopback", "", error);
  const bool good = hand_out(listener, "hand out the listener");
  ::close(listener);
  return good && (!base_.transparent || make_transparent());
}

// What fails here is told and not fatal: whether a launch needs it is the launcher's to say.
int open_transparent(const Foundation& base, TransparentWay& way, std::array<int, TransparentWay::kCount>& sockets) {
  const auto failed = [&](TransparentStep step, int error) {
    way.failed = step;
    return error;
  };
  bool v6 = false;
  if (base.synthetic_routes) {
    if (const int error = linux::add_synthetic_routes(v6)) return failed(kRouteStep, error);
  }
  way.v6 = v6 ? 1 : 0;
  if (base.redirect) {
    if (const int error = linux::redirect_synthetic_tcp(kRedirectPort, base.hook_port))
      return failed(kRedirectStep, error);
  }
  int error = linux::listen_on_every_address(kRedirectPort, sockets[TransparentWay::kRedirected]);
  const uint16_t port = base.resolver ? kResolverPort : uint16_t{0};
  if (error == 0) error = linux::bind_datagrams_on_every_address(port, sockets[TransparentWay::kDatagrams]);
  if (error == 0) error = linux::listen_on_every_address(port, sockets[TransparentWay::kStreams]);
  return error == 0 ? 0 : failed(kListenStep, error);
}

bool Run::make_transparent() {
  TransparentWay way{guest::kMagic};
  std::array<int, TransparentWay::kCount> sockets{-1, -1, -1};
  way.error = open_transparent(base_, way, sockets);
  const int error = linux::send_with_descriptor(child_.control, &way, sizeof way, -1);
  bool good = error == 0 || fail("tell of the transparent way", "", error);
  for (const int socket : sockets) {
    good = good && (way.error != 0 || hand_out(socket, "hand out the transparent way"));
    if (socket >= 0) ::close(socket);
  }
  return good;
}

bool Run::set_ids() {
  if (!base_.privileged) return true;
  const plan::Identity& who = program_->identity;
  // Bare calls: glibc's wrappers would signal the launcher's other threads to follow (nptl(7), "C library/kernel
  // differences"), and it is the launcher's thread list that this process sees.
  if (program_->protections.drop_groups && ::syscall(SYS_setgroups, 0, nullptr) != 0) {
    return fail("drop the groups", "", errno);
  }
  if ((base_.namespaces & CLONE_NEWUSER) != 0 &&
      !check(::setns(identities_[Identities::kUserNamespace], CLONE_NEWUSER) == 0, "enter the guest's user namespace",
             "")) {
    return false;
  }
  return check(::syscall(SYS_setresgid, who.guest_gid, who.guest_gid, who.guest_gid) == 0, "become the guest's group",
               "") &&
         check(::syscall(SYS_setresuid, who.guest_uid, who.guest_uid, who.guest_uid) == 0, "become the guest's user",
               "") &&
         // setresuid() has cleared it (prctl(2), PR_SET_PDEATHSIG).
         arm_death_signal();
}

// Half of the `whole` that a user has of inotify: what the guest has counts for the person too (namespaces(7),
// /proc/sys/user), whose editors need some. Nothing where the kernel has none.
bool Run::share_watches(const char* whole, const char* own) {
  const int from = ::openat(files_.proc(), whole, O_RDONLY | O_CLOEXEC);
  if (from < 0) return errno == ENOENT || fail("open", whole, errno);
  std::array<char, 24> text{};
  const ssize_t size = ::read(from, text.data(), text.size());
  ::close(from);
  uint64_t value = 0;
  const std::string_view line(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  if (!base::parse_uint(line.substr(0, line.find('\n')), value)) return fail("read", whole, EINVAL);
  return check(write_text(files_.proc(), own, numbered(text, "", value / 2)), "share the watches", own);
}

bool Run::drop_privilege() {
  if (!set_ids()) return false;
  if (program_->protections.limit_namespaces) {
    // Through a clone of proc, since /proc/sys is read-only for the guest. The limit is the user namespace's own, and
    // holds for its descendants too (namespaces(7), /proc/sys/user).
    if (!check(write_text(files_.proc(), "sys/user/max_user_namespaces",
                          program_->nested ? guest::kNestedNamespaces : "0"),
               "bound the user namespaces", "max_user_namespaces")) {
      return false;
    }
    if (!share_watches("sys/fs/inotify/max_user_instances", "sys/user/max_inotify_instances") ||
        !share_watches("sys/fs/inotify/max_user_watches", "sys/user/max_inotify_watches")) {
      return false;
    }
  }
  if (program_->protections.drop_bounding_set) {
    // The other four sets empty themselves: the user is not root, so execve(2) gives no capability.
    // EINVAL is the end of what this kernel knows.
    unsigned long capability = 0;
    while (::prctl(PR_CAPBSET_DROP, capability) == 0) ++capability;
    if (errno != EINVAL || capability == 0) return fail("drop the bounding set", "", errno);
  }
  return true;
}

bool Run::place_descriptors() {
  // First above the numbers that init expects, so that none is overwritten before it was moved.
  const std::array<int, 6> wanted{given_[Order::kStdin], given_[Order::kStdout], given_[Order::kStderr],
                                  child_.control,        given_[Order::kConfig], files_.scratch()};
  std::array<int, wanted.size()> moved{};
  constexpr int kAbove = wanted.size();
  for (size_t i = 0; i < wanted.size(); ++i) {
    moved[i] = ::fcntl(wanted[i], F_DUPFD_CLOEXEC, kAbove);
    if (moved[i] < 0) return fail("move a descriptor", "", errno);
  }
  guest_ = ::fcntl(files_.guest(), F_DUPFD_CLOEXEC, kAbove);
  if (guest_ < 0) return fail("move a descriptor", "", errno);
  for (size_t i = 0; i < moved.size(); ++i) {
    if (::dup2(moved[i], static_cast<int>(i)) < 0) return fail("place a descriptor", "", errno);
  }
  return true;
}

bool Run::execute() {
  std::array<char, 16> name{"belljar-guest"};
  std::array<char*, 2> arguments{name.data(), nullptr};
  std::array<char*, 1> environment{nullptr};
  ::syscall(SYS_execveat, guest_, "", arguments.data(), environment.data(), AT_EMPTY_PATH);
  return fail("execute", child_.guest_path, errno);
}

// All that needs no plan. It runs while the launcher makes one.
bool Run::found() {
  // Copies of everything the launcher had open when it cloned, among them its end of the control socket and whatever
  // its other threads were at. One that is kept would hide the launcher's death from whoever waits for its end.
  const auto own = static_cast<unsigned>(child_.control);
  if (base_.close_descriptors &&
      !check((own <= 3 || ::close_range(3, own - 1, 0) == 0) && ::close_range(own + 1, UINT_MAX, 0) == 0,
             "close what the launcher had open")) {
    return false;
  }
  ::umask(0);
  // Out of the caller's session: its terminal is not this process's to reach.
  if (!check(::setsid() >= 0, "start a session")) return false;
  if (!arm_death_signal() || !map_ids()) return false;
  // Nothing mounted from here on may reach the host's other mount namespaces (mount_namespaces(7)).
  if (!check(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "make private", "/")) return false;
  if (!files_.make_mounts() || !make_network()) return false;
  files_.open_early_trees();
  return true;
}

bool Run::take_order() {
  Order order;
  const int error = linux::receive_with_descriptors(child_.control, &order, sizeof order, given_.data(), given_.size());
  if (error != 0 || order.magic != guest::kMagic) return fail("take the order", "", error != 0 ? error : EPROTO);
  program_ = child_.program;
  return true;
}

// Once. The launcher makes them while the child is at work, so the child asks only when it can do no more without.
bool Run::take_identities() {
  if (!base_.privileged || identities_[Identities::kUserNamespace] >= 0) return true;
  Identities order;
  const int error =
      linux::receive_with_descriptors(child_.control, &order, sizeof order, identities_.data(), identities_.size());
  return (error == 0 && order.magic == guest::kMagic) ||
         fail("take the user namespaces", "", error != 0 ? error : EPROTO);
}

// Before init, and so before anything that could grow. A write of 0 means the writer (cgroups(7)).
bool Run::enter_groups() {
  Entries entries;
  std::array<int, Entries::kMost> given{};
  const int error =
      linux::receive_with_descriptors(child_.control, &entries, sizeof entries, given.data(), given.size());
  if (error != 0 || entries.magic != guest::kMagic || entries.count > given.size()) {
    return fail("take the cgroups", "", error != 0 ? error : EPROTO);
  }
  for (size_t i = 0; i < entries.count; ++i) {
    if (!check(::write(given[i], "0", 1) == 1, "enter the guest's cgroup")) return false;
  }
  return true;
}

bool Run::build() {
  if (!files_.open_trees() || !files_.make_scratch() || !files_.attach_root()) return false;
  for (Step& step : child_.program->steps) {
    if (step.idmap && !take_identities()) return false;
    if (!files_.carry_out(step, identities_[Identities::kIdMap])) return false;
  }
  return hand_out(files_.scratch(), "hand out the scratch") && files_.change_root() && take_identities() &&
         enter_groups() && drop_privilege() && place_descriptors() && execute();
}

bool Run::all() {
  return found() && take_order() && build();
}

}  // namespace

int run_child(void* child) {
  auto* const self = static_cast<Child*>(child);
  Run(*self).all();
  return 125;
}

}  // namespace belljar::tiers::jail
