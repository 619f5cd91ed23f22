#include "guest/init.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "base/reap.h"
#include "guest/agent.h"
#include "guest/config.h"
#include "guest/container.h"
#include "guest/probe.h"
#include "guest/protocol.h"
#include "linux/capabilities.h"
#include "linux/clone.h"
#include "linux/descriptor_passing.h"
#include "linux/landlock_domain.h"
#include "linux/loopback.h"
#include "linux/rlimits.h"
#include "linux/seal.h"
#include "linux/seccomp_filter.h"

namespace belljar::guest {
namespace {

constexpr size_t kLargestConfig = size_t{8} << 20U;
constexpr int kLauncherGone = 125;

int64_t session_keyring() {
  return ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
}

// errno of a child in a user namespace of its own, or 0 when there can be one.
int try_user_namespace() {
  alignas(16) std::array<char, 4096> stack;
  const int64_t pid = linux::clone_sharing_memory(
      CLONE_VFORK | CLONE_NEWUSER, nullptr, -1, stack.data(), stack.size(), [](void*) { return 0; }, nullptr);
  if (pid < 0) return static_cast<int>(-pid);
  (void)base::reap(static_cast<pid_t>(pid));
  return 0;
}

class Init {
 public:
  Init() = default;
  explicit Init(char** environment) {
    for (char** one = environment; *one != nullptr; ++one) observed_.environment.emplace_back(*one);
  }
  int run(bool container);

 private:
  bool read_config();
  int take_over();
  bool hand_out(int fd);
  bool settle_in();
  int confine();
  int confine_step(Step step);
  int restrict_files();
  bool open_terminal();
  bool send(const GuestMessage& message, int fd = -1) {
    return linux::send_with_descriptor(kControlFd, &message, sizeof message, fd) == 0;
  }
  int prove_and_wait();
  int supervise(pid_t agent);
  bool serve_launcher(pid_t agent);
  bool hand_out_socket(int family);
  bool reap(pid_t agent, int& status);

  std::string bytes_;
  Config config_;
  Observed observed_;
  base::Fd master_;
  base::Fd slave_;
  base::Fd signals_;
};

bool Init::read_config() {
  auto bytes = base::read_to_end(kConfigFd, kLargestConfig, "config");
  ::close(kConfigFd);
  if (!bytes) return false;
  bytes_ = std::move(*bytes);
  return decode(bytes_, config_);
}

bool Init::hand_out(int fd) {
  const uint32_t tag = kMagic;
  return fd >= 0 && linux::send_with_descriptor(kControlFd, &tag, sizeof tag, fd) == 0;
}

// What the jail's child does before it executes init. 0 or an errno.
int Init::take_over() {
  ::prctl(PR_SET_NAME, "belljar-guest");  // it was executed by a descriptor's number
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::dup2(kStdioFd + fd, fd) < 0) return errno;
  }
  ::close_range(kStdioFd, UINT_MAX, 0);
  if (config_.isolated_network) {
    int listener = -1;
    if (const int error = linux::listen_on_loopback(config_.proxy_port, listener); error != 0) return error;
    const base::Fd owned(listener);
    if (!hand_out(listener)) return errno;
  }
  for (const std::string_view folder : config_.scratch) {
    const base::Fd opened(::open(folder.data(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!hand_out(opened.get())) return errno;
  }
  if (config_.canary.empty()) return 0;
  const int canary = ::open(config_.canary.data(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (canary < 0) return errno;
  if (canary == kScratchFd) return 0;
  const int error = ::dup2(canary, kScratchFd) < 0 ? errno : 0;
  ::close(canary);
  return error;
}

int Init::restrict_files() {
  linux::LandlockFeatures features = linux::landlock_features(static_cast<int>(config_.landlock_abi));
  if (config_.nested) {
    // File rules, whatever they allow, refuse every mount (landlock(7), "File system topology modification").
    features.files = false;
    return features.signals || features.abstract_sockets ? linux::landlock_restrict({}, features) : 0;
  }
  std::vector<base::Fd> owned;
  std::vector<linux::LandlockRule> rules;
  const auto add = [&](std::string_view path, bool writable, bool device) {
    owned.emplace_back(::open(path.data(), O_PATH | O_CLOEXEC));
    rules.push_back({owned.back().get(), writable, device});
    return owned.back().valid();
  };
  if (!add("/", false, false) || !add("/dev", false, true) || !add("/proc", true, false)) return errno;
  for (const std::string_view path : config_.writable) {
    if (!add(path, true, false)) return errno;
  }
  return linux::landlock_restrict(rules, features);
}

int Init::confine_step(Step step) {
  switch (step) {
    case kStepNotDumpable:
      return linux::set_not_dumpable();
    case kStepKeyring: {
      const int error = linux::new_session_keyring();
      // Without keyrings there is nothing to inherit; a container that refuses the call refuses it to the agent too.
      return config_.host_keyring == 0 ? 0 : error;
    }
    case kStepLimits: {
      std::vector<linux::ResourceLimit> limits{{RLIMIT_CORE, linux::kNoCoreDump}};
      if (config_.processes != 0) limits.push_back({RLIMIT_NPROC, config_.processes});
      if (config_.open_files != 0) limits.push_back({RLIMIT_NOFILE, config_.open_files});
      if (config_.file_bytes != 0) limits.push_back({RLIMIT_FSIZE, config_.file_bytes});
      // What is counted for the person as well, when an ordinary user launches: all of it would leave them none.
      for (const int resource : {RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE}) {
        rlimit whole{};
        const bool known = ::getrlimit(static_cast<__rlimit_resource_t>(resource), &whole) == 0;
        if (known && whole.rlim_cur != RLIM_INFINITY) limits.push_back({resource, whole.rlim_cur / 2});
      }
      return linux::set_limits(limits);
    }
    case kStepNoNewPrivileges:
      return linux::set_no_new_privs();
    case kStepCapabilities:
      return linux::drop_capabilities();
    case kStepLandlock:
      return config_.landlock_abi == 0 ? 0 : restrict_files();
    case kStepSeccomp:
      return linux::install_filter(config_.nested ? linux::nested_filter() : linux::agent_filter());
    case kStepDescriptors:
      return ::close_range(kFirstFreeFd, UINT_MAX, 0) == 0 ? 0 : errno;
    case kStepHome:
    case kEveryStep:
      break;
  }
  return EINVAL;
}

// Landlock before the filter, which shuts nothing that Landlock needs but keeps the order of the plan's promise: what
// comes later cannot undo what came before.
int Init::confine() {
  static constexpr std::array kOrder = {kStepDescriptors,     kStepNotDumpable,  kStepKeyring,  kStepLimits,
                                        kStepNoNewPrivileges, kStepCapabilities, kStepLandlock, kStepSeccomp};
  for (const Step step : kOrder) {
    if (step == kStepSeccomp) {
      observed_.session_keyring = session_keyring();
      // The filter would hide whether there is a limit.
      if (config_.made_by_other) observed_.user_namespace_error = try_user_namespace();
    }
    if ((config_.steps & step) == 0) continue;
    const int error = confine_step(step);
    if (error != 0) {
      GuestMessage message;
      message.event = GuestEvent::kSetupFailed;
      message.step = step;
      message.value = error;
      (void)send(message);
      return error;
    }
  }
  return 0;
}

// What a jail's child does before init is there, and a look at what the engine has made before anything is added to it.
bool Init::settle_in() {
  if (!config_.container || !hand_out_of_container(config_)) return false;
  if (auto status = base::read_file("/proc/self/status")) observed_.status_at_start = std::move(*status);
  observed_.left_in_scratch = left_in_scratch(config_);
  GuestMessage message;
  std::string_view path;
  message.value = make_home(config_, path);
  if (message.value == 0) return true;
  message.event = GuestEvent::kSetupFailed;
  message.step = kStepHome;
  (void)send(message);
  return false;
}

// On the guest's own devpts: the launcher's terminal stays out of reach, the launcher gets the master.
bool Init::open_terminal() {
  if (!config_.terminal) return true;
  master_ = base::Fd(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  int unlock = 0;
  if (!master_ || ::ioctl(master_.get(), TIOCSPTLCK, &unlock) != 0) return false;
  slave_ = base::Fd(::ioctl(master_.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  // Init leads the session, so that the agent's process group has a parent in it and ^Z can stop it (POSIX: a stop
  // signal from the terminal is ignored by an orphaned process group).
  return slave_.valid() && ::ioctl(slave_.get(), TIOCSCTTY, 0) == 0;
}

int Init::prove_and_wait() {
  if (!config_.nested) {
    const int canary = ::openat(kScratchFd, "landlock-canary", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    observed_.landlock_write_error = canary < 0 ? errno : 0;
    if (canary >= 0) ::close(canary);
  }
  ::close(kScratchFd);
  observed_.own_descriptors = {kControlFd, master_.get(), slave_.get(), signals_.get()};
  GuestMessage message;
  message.event = GuestEvent::kProbed;
  message.probe = run_probe(config_, observed_);
  if (!send(message, master_.get())) return kLauncherGone;
  master_.reset();
  LauncherMessage request;
  base::Fd none;
  if (linux::receive_with_descriptor(kControlFd, &request, sizeof request, none) != 0 || request.magic != kMagic ||
      request.request != LauncherRequest::kGo) {
    return kLauncherGone;
  }
  return 0;
}

// A TCP socket of this network namespace, which the launcher connects to a port of the loopback. Not one of init's own
// connections: it is closed here at once, and the agent never sees it.
bool Init::hand_out_socket(int family) {
  GuestMessage message;
  message.event = GuestEvent::kSocket;
  const bool known = family == AF_INET || family == AF_INET6;
  const base::Fd socket(known ? ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1);
  message.value = socket ? 0 : (known ? errno : EINVAL);
  return send(message, socket.get());
}

// False when the launcher is gone.
bool Init::serve_launcher(pid_t agent) {
  LauncherMessage request;
  base::Fd none;
  if (linux::receive_with_descriptor(kControlFd, &request, sizeof request, none) != 0 || request.magic != kMagic) {
    return false;
  }
  if (request.request == LauncherRequest::kSignal) {
    // The group, as a terminal would: the agent leads one.
    if (::kill(-agent, request.value) != 0) ::kill(agent, request.value);
  }
  return request.request != LauncherRequest::kSocket || hand_out_socket(request.value);
}

// Collects what has ended, whoever's child it was. True when the agent has, with its wait status.
bool Init::reap(pid_t agent, int& status) {
  bool ended = false;
  for (;;) {
    int each = 0;
    const pid_t pid = ::waitpid(-1, &each, WNOHANG | WUNTRACED);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return ended;
    if (pid != agent) continue;
    if (WIFSTOPPED(each)) {
      GuestMessage message;
      message.event = GuestEvent::kStopped;
      message.value = WSTOPSIG(each);
      (void)send(message);
    } else {
      status = each;
      ended = true;
    }
  }
}

int Init::supervise(pid_t agent) {
  std::array<pollfd, 2> wait{{{kControlFd, POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
  for (;;) {
    if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return kLauncherGone;
    if (wait[1].revents != 0) {
      signalfd_siginfo info{};
      (void)!::read(signals_.get(), &info, sizeof info);
      int status = 0;
      if (reap(agent, status)) {
        GuestMessage message;
        message.event = GuestEvent::kExited;
        message.value = status;
        (void)send(message);
        return 0;
      }
    }
    if (wait[0].revents != 0 && !serve_launcher(agent)) return kLauncherGone;
  }
}

int Init::run(bool container) {
  // Before anything that could be watched: execve(2) of a readable file has made the process dumpable again.
  if (linux::set_not_dumpable() != 0 || (container && !meet_launcher()) || !read_config()) return kLauncherGone;
  if (container && !settle_in()) return kLauncherGone;
  // It came through an execve(2) to get here, and must not go through the agent's.
  if (::fcntl(kControlFd, F_SETFD, FD_CLOEXEC) != 0) return kLauncherGone;
  if ((config_.steps & kStepNotDumpable) == 0) ::prctl(PR_SET_DUMPABLE, 1);
  if (config_.made_by_other) {
    if (const int error = take_over(); error != 0) {
      GuestMessage failed;
      failed.event = GuestEvent::kSetupFailed;
      failed.value = error;
      (void)send(failed);
      return kLauncherGone;
    }
  }
  ::umask(config_.umask);
  if (confine() != 0) return kLauncherGone;
  sigset_t every;
  ::sigfillset(&every);
  ::sigprocmask(SIG_SETMASK, &every, nullptr);
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  signals_ = base::Fd(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  GuestMessage message;
  const bool ready = signals_ && open_terminal();
  if (!ready || ::chdir(config_.chdir.data()) != 0) {
    message.event = GuestEvent::kSetupFailed;
    message.value = errno;
    // Which folder, when that is what failed.
    const std::string_view folder = ready ? config_.chdir.substr(0, message.probe.subject.size() - 1) : "";
    std::copy(folder.begin(), folder.end(), message.probe.subject.begin());
    (void)send(message);
    return kLauncherGone;
  }
  const int refused = prove_and_wait();
  if (refused != 0) return refused;
  const pid_t agent = start_agent(config_, slave_.get());
  message.event = agent < 0 ? GuestEvent::kExecFailed : GuestEvent::kStarted;
  message.value = agent < 0 ? -agent : 0;
  if (!send(message) || agent < 0) return kLauncherGone;
  // Only the agent's copies are left: when it closes one, the launcher's end shows it.
  ::close(STDIN_FILENO);
  ::close(STDOUT_FILENO);
  ::close(STDERR_FILENO);
  slave_.reset();
  return supervise(agent);
}

}  // namespace

int run_init() {
  return Init().run(false);
}

int run_container_init(char** environment) {
  return Init(environment).run(true);
}

}  // namespace belljar::guest
