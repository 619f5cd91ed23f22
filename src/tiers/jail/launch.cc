#include "tiers/jail/launch.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/io.h"
#include "base/pair.h"
#include "base/path.h"
#include "base/text.h"
#include "linux/descriptor_passing.h"
#include "linux/landlock_domain.h"
#include "linux/user_namespace.h"

namespace belljar::tiers::jail {
namespace {

// SYS_pidfd_send_signal and waitid(P_PIDFD) have no wrappers in older libcs.
constexpr auto kPidfd = static_cast<idtype_t>(3);
constexpr int kForeignEndMilliseconds = 10'000;

// The raw call gives the usage too: of init and of those that it has collected.
bool reap(int pidfd, rusage& usage) {
  siginfo_t info{};
  while (::syscall(SYS_waitid, kPidfd, pidfd, &info, WEXITED, &usage) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

guest::ExpectedMount expected_of(const plan::Mount& mount) {
  guest::ExpectedMount out;
  out.path = mount.target;
  switch (mount.kind) {
    case plan::MountKind::kBind:
      out.writable = mount.writable;
      out.below = true;
      break;
    case plan::MountKind::kDevice:
      out.device = true;
      break;
    case plan::MountKind::kPts:
      out.device = true;
      out.writable = true;
      break;
    case plan::MountKind::kPrivate:
      out.writable = true;
      out.private_copy = true;
      break;
    case plan::MountKind::kProc:
    case plan::MountKind::kScratch:
      out.writable = true;
      break;
    default:
      break;
  }
  return out;
}

// What the guest's mountinfo must hold: the mounts that the program makes, the root among them.
std::vector<guest::ExpectedMount> expected_mounts(const plan::Plan& plan, const Program& program) {
  std::vector<guest::ExpectedMount> out{{.path = "/"}};
  // The steps are in the order of the mounts, of which each has a target of its own.
  size_t next = 0;
  for (const Step& step : program.steps) {
    if (step.op == Op::kFolder || step.op == Op::kLink || step.op == Op::kFile) continue;
    for (size_t i = 0; i < plan.mounts.size(); ++i) {
      const size_t at = (next + i) % plan.mounts.size();
      const plan::Mount& mount = plan.mounts[at];
      if (mount.target.compare(1, std::string::npos, step.target) != 0) continue;
      guest::ExpectedMount expected = expected_of(mount);
      expected.optional = step.optional || step.op == Op::kMask;
      out.push_back(expected);
      next = at + 1;
      break;
    }
  }
  return out;
}

guest::Config make_config(const plan::Plan& plan, const Program& program) {
  guest::Config config;
  config.isolated_network = plan.network == policy::Network::kDeny;
  config.nested = plan.nested;
  config.proxy_port = plan.proxy_port;
  config.uid = plan.identity.guest_uid;
  config.gid = plan.identity.guest_gid;
  config.landlock_abi = static_cast<uint32_t>(linux::landlock_abi());
  if (!linux::landlock_features(static_cast<int>(config.landlock_abi)).files) config.landlock_abi = 0;
  config.processes = plan.limits.processes;
  config.open_files = plan.limits.open_files;
  config.file_bytes = plan.limits.file_bytes.value_or(0);
  config.scratch_bytes = plan.limits.scratch_bytes;
  config.scratch_files = plan.limits.scratch_files;
  config.launched_by_root = program.privileged;
  const long keyring = ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
  config.host_keyring = keyring > 0 ? keyring : 0;
  config.hostname = plan.hostname;
  config.work_folder = plan.work_folder;
  config.chdir = plan.chdir;
  config.program = plan.program;
  for (const std::string& word : plan.command) config.arguments.push_back(word);
  for (const std::string& path : plan.writable) config.writable.push_back(path);
  config.mounts = expected_mounts(plan, program);
  return config;
}

// The guest's program reads it first. `socket` is a stream; `bytes` is left with what it did not take.
base::Status send_config(int socket, std::string_view& bytes, int flags) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | flags);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return {};
    if (n < 0) return base::system_error("tell the guest its plan", "", errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

std::string why_not_transparent(const TransparentWay& way) {
  const char* const code = strerrordesc_np(way.error);
  std::string out = way.failed == kRouteStep      ? "no local route for its addresses"
                    : way.failed == kRedirectStep ? "nf_tables does not redirect here"
                                                  : "its ports cannot be had";
  return out + ": " + (code != nullptr ? code : "unknown error");
}

base::Result<Transparent> take_transparent(int control) {
  TransparentWay way;
  base::Fd none;
  const int error = linux::receive_with_descriptor(control, &way, sizeof way, none);
  if (error != 0 || way.magic != guest::kMagic) {
    return base::refuse("take the transparent way", "", "it did not arrive, refusing");
  }
  Transparent out;
  if (way.error != 0) {
    out.missing = why_not_transparent(way);
    return out;
  }
  constexpr const char* kWhat = "take the transparent way";
  out.v6 = way.v6 != 0;
  BELLJAR_ASSIGN(out.redirected, take_descriptor(control, kWhat, 0));
  BELLJAR_ASSIGN(out.datagrams, take_descriptor(control, kWhat, 0));
  BELLJAR_ASSIGN(out.streams, take_descriptor(control, kWhat, 0));
  return out;
}

struct WaysOut {
  base::Fd listener;
  Transparent transparent;
};

// What the child has made before it looked for its order. Waits for it.
base::Result<WaysOut> take_ways_out(int control, const Foundation& base) {
  WaysOut out;
  if (base.proxy_port == 0 || !base.listener) return out;
  BELLJAR_ASSIGN(out.listener, take_descriptor(control, "take the guest's listener", 0));
  if (base.transparent) {
    BELLJAR_ASSIGN(out.transparent, take_transparent(control));
  }
  return out;
}

base::Error probe_error(const guest::ProbeRecord& record) {
  const auto text = [](const auto& field) { return std::string(field.data(), ::strnlen(field.data(), field.size())); };
  base::Error error;
  error.operation = std::string("probe ") + guest::check_name(static_cast<guest::Check>(record.failed));
  error.subject = text(record.subject);
  error.reason = "expected " + text(record.expected) + ", found " + text(record.found) + ", refusing";
  error.hint = "the guest is not what the plan says; nothing was started: see 'belljar doctor'";
  return error;
}

const char* step_name(uint32_t step) {
  switch (static_cast<guest::Step>(step)) {
    case guest::kStepNotDumpable:
      return "make init untraceable";
    case guest::kStepKeyring:
      return "join an own session keyring";
    case guest::kStepLimits:
      return "set the resource limits";
    case guest::kStepNoNewPrivileges:
      return "set no_new_privs";
    case guest::kStepCapabilities:
      return "drop the capabilities";
    case guest::kStepLandlock:
      return "restrict files by landlock";
    case guest::kStepSeccomp:
      return "install the system-call filter";
    case guest::kStepDescriptors:
      return "close inherited descriptors";
    case guest::kStepHome:
      return "put the agent's files into the home";
    case guest::kEveryStep:
      break;
  }
  return "set up init";
}

}  // namespace

base::Status check_guest_program(const std::string& path, const struct stat& found) {
  if (!S_ISREG(found.st_mode)) return base::refuse("use", path, "it is not a regular file, refusing");
  // In a user namespace without root, as of a rootless container, root's files are nobody's who is in here.
  const bool outsiders = found.st_uid != 0 && found.st_uid != ::geteuid() && !linux::is_mapped_uid(0) &&
                         !linux::is_mapped_uid(found.st_uid);
  const bool trusted = found.st_uid == 0 || found.st_uid == ::geteuid() || outsiders;
  if (!trusted || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return base::refuse("use", path, "others could have written it, refusing", "chmod go-w it and own it");
  }
  return {};
}

base::Result<std::vector<uint64_t>> own_namespaces(uint64_t separate) {
  static constexpr std::array<uint64_t, 7> kFlags = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                                     CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
  std::vector<uint64_t> out;
  for (size_t i = 0; i < guest::kNamespaceNames.size(); ++i) {
    if ((separate & kFlags[i]) == 0) {
      out.push_back(0);
      continue;
    }
    const std::string path = std::string("/proc/self/ns/") + guest::kNamespaceNames[i];
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) return base::system_error("read", path, errno);
    out.push_back(found.st_ino);
  }
  return out;
}

// What the child has handed out before it became init.
base::Result<base::Fd> take_descriptor(int control, std::string_view what, int flags) {
  uint32_t tag = 0;
  base::Fd out;
  const int error = linux::receive_with_descriptor(control, &tag, sizeof tag, out, flags);
  if (error != 0 || tag != guest::kMagic || !out) return base::refuse(what, "", "it did not arrive, refusing");
  return out;
}

base::Result<UserNamespaces> make_user_namespaces(const Program& program) {
  UserNamespaces out;
  if (!program.privileged) return out;
  const plan::Identity& who = program.identity;
  const linux::IdMap guest{who.guest_uid, who.guest_gid, who.host_uid, who.host_gid};
  const linux::IdMap disk{who.disk_uid, who.disk_gid, who.host_uid, who.host_gid};
  BELLJAR_ASSIGN(out.guest, linux::UserNamespace::make(guest));
  if (who.idmap && disk != guest) {
    BELLJAR_ASSIGN(out.id_map, linux::UserNamespace::make(disk));
  }
  return out;
}

Guest::Guest(Parts parts)
    : keeper_(std::move(parts.keeper)),
      pidfd_(std::move(parts.init)),
      monitor_(std::move(parts.monitor)),
      life_(std::move(parts.life)),
      control_(std::move(parts.control)),
      listener_(std::move(parts.listener)),
      scratch_(std::move(parts.scratch)),
      more_scratch_(std::move(parts.more_scratch)),
      pid_(parts.pid),
      foreign_(parts.foreign) {}

Guest::~Guest() {
  kill();
}

void Guest::kill() {
  if (pidfd_) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  if (foreign_) {
    control_.reset();
    pollfd wait{pidfd_.get(), POLLIN, 0};
    if (pidfd_) (void)::poll(&wait, 1, kForeignEndMilliseconds);
    pidfd_.reset();
    return;
  }
  // The end of init is reported only after everything else in its pid namespace has ended (pid_namespaces(7)).
  if (pidfd_ && !monitor_) reap(pidfd_.get(), usage_);
  if (monitor_) {
    pollfd wait{pidfd_.get(), POLLIN, 0};
    while (pidfd_ && ::poll(&wait, 1, -1) < 0 && errno == EINTR) {
    }
    // Whoever has collected init ends by itself, and its usage has init's in it.
    if (!pidfd_) life_.reset();
    reap(monitor_.get(), usage_);
    monitor_.reset();
  }
  life_.reset();
  pidfd_.reset();
}

base::Result<guest::GuestMessage> Guest::receive() {
  guest::GuestMessage message;
  base::Fd descriptor;
  const int error = linux::receive_with_descriptor(control_.get(), &message, sizeof message, descriptor);
  // A guest may have this process's descriptors all in use; it is heard all the same.
  if (error != 0 && error != EMFILE) return base::system_error("hear from the guest", "", error);
  if (message.magic != guest::kMagic) return base::refuse("hear from the guest", "", "not a message of ours, refusing");
  if (message.event == guest::GuestEvent::kSocket) {
    socket_ = std::move(descriptor);
  } else if (message.event == guest::GuestEvent::kProbed && !terminal_) {
    terminal_ = std::move(descriptor);
  }
  return message;
}

base::Result<guest::ProbeRecord> Guest::prove(const base::Deadline& deadline) {
  pollfd wait{control_.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&wait, 1, deadline.poll_timeout());
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return base::refuse("probe the guest", "", "no record in time, refusing");
  BELLJAR_ASSIGN(guest::GuestMessage message, receive());
  if (message.event == guest::GuestEvent::kSetupFailed) {
    const auto& folder = message.probe.subject;
    if (message.step == 0 && folder[0] != '\0') {
      return base::system_error("start in", std::string(folder.data(), ::strnlen(folder.data(), folder.size())),
                                message.value, "the folder must be there in the guest: see 'belljar plan'");
    }
    return base::system_error(step_name(message.step), "", message.value, "see 'belljar doctor'");
  }
  if (message.event != guest::GuestEvent::kProbed) return base::refuse("probe the guest", "", "no record, refusing");
  const guest::ProbeRecord& record = message.probe;
  if (record.failed != 0) return std::unexpected(probe_error(record));
  // Bit 0 is no check. A record that claims less than everything is no proof.
  constexpr uint64_t kAll = (uint64_t{1} << static_cast<uint32_t>(guest::Check::kCount)) - 2;
  if (record.passed != kAll) return base::refuse("probe the guest", "", "not every check was made, refusing");
  return record;
}

base::Status Guest::release() {
  const guest::LauncherMessage go;
  const int error = linux::send_with_descriptor(control_.get(), &go, sizeof go, -1);
  if (error != 0) return base::system_error("release the guest", "", error);
  return {};
}

base::Status Guest::send_signal(int signal) {
  const guest::LauncherMessage message{guest::kMagic, guest::LauncherRequest::kSignal, signal};
  const int error = linux::send_with_descriptor(control_.get(), &message, sizeof message, -1);
  if (error != 0) return base::system_error("signal the guest", "", error);
  return {};
}

base::Status Guest::ask_for_socket(int family) {
  const guest::LauncherMessage message{guest::kMagic, guest::LauncherRequest::kSocket, family};
  const int error = linux::send_with_descriptor(control_.get(), &message, sizeof message, -1);
  if (error != 0) return base::system_error("ask the guest for a socket", "", error);
  return {};
}

base::Result<Prepared> prepare(const plan::Plan& plan, const std::string& guest_path, const Copies& copies) {
  struct stat found{};
  if (::lstat(guest_path.c_str(), &found) != 0) {
    return base::system_error("open", guest_path, errno, "belljar-guest belongs beside belljar; install both");
  }
  BELLJAR_TRY(check_guest_program(guest_path, found));
  Prepared out;
  out.guest_path = guest_path;
  BELLJAR_ASSIGN(out.program, compile(plan, ::geteuid() == 0, copies));
  if (out.program.identity.host_uid == 0) {
    return base::refuse("launch", plan.work_folder, "the guest would be root on the host, refusing");
  }
  out.config = make_config(plan, out.program);
  for (const plan::EnvVar& variable : plan.env) {
    out.program.text.push_back(variable.name + "=" + variable.value);
    out.config.environment.push_back(out.program.text.back());
  }
  struct stat work{};
  if (::stat(plan.work_folder.c_str(), &work) != 0) return base::system_error("open", plan.work_folder, errno);
  out.config.work_device = work.st_dev;
  out.config.work_inode = work.st_ino;
  return out;
}

base::Result<Guest> start(Prepared& prepared, const Stdio& stdio) {
  return start(prepared, stdio, nullptr);
}

base::Result<Guest> start(Prepared& prepared, const Stdio& stdio, std::unique_ptr<Keeper> keeper,
                          const std::function<base::Status()>& meanwhile, const linux::Cgroup* group) {
  Program& program = prepared.program;
  if (!keeper) {
    BELLJAR_ASSIGN(keeper, Keeper::start(foundation_of(program), group != nullptr ? group->folder_for_clone() : -1));
  }
  if (keeper->foundation() != foundation_of(program)) {
    return base::refuse("start the guest", "", "it was begun for another plan, refusing");
  }
  guest::Config config = prepared.config;
  config.terminal = stdio.fds[0] < 0;
  config.terminal_stderr = stdio.fds[2] < 0;
  base::Fd config_out;
  base::Fd config_in;
  BELLJAR_TRY(base::make_pair(SOCK_STREAM, config_out, config_in));
  const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  struct stat program_file{};
  if (!null || ::stat(prepared.guest_path.c_str(), &program_file) != 0) {
    return base::system_error("open", prepared.guest_path, errno);
  }
  Child& child = keeper->child();
  child.program = &program;
  child.guest_path = prepared.guest_path.c_str();
  child.guest_device = program_file.st_dev;
  child.guest_inode = program_file.st_ino;
  std::array<int, Order::kCount> descriptors{};
  descriptors[Order::kConfig] = config_in.get();
  for (size_t i = 0; i < 3; ++i) descriptors[Order::kStdin + i] = stdio.fds[i] < 0 ? null.get() : stdio.fds[i];
  keeper->order(descriptors);
  // While the child works.
  BELLJAR_ASSIGN(const UserNamespaces users, make_user_namespaces(program));
  if (users.guest.valid()) {
    keeper->lend({users.guest.fd(), users.id_map.valid() ? users.id_map.fd() : users.guest.fd()});
  }
  // Likewise. What the socket does not hold has to wait for a reader: the child may fail.
  if (config.host_namespaces.empty()) {
    BELLJAR_ASSIGN(config.host_namespaces, own_namespaces(program.protections.namespaces));
  }
  auto ways = take_ways_out(keeper->control(), keeper->foundation());
  if (!ways) {
    BELLJAR_TRY(keeper->wait());  // the child's own word is the better one
    return std::unexpected(std::move(ways).error());
  }
  if (program.transparent == policy::Transparent::kRequired && !ways->transparent.missing.empty()) {
    return base::refuse("isolation.transparent", "required", ways->transparent.missing + ", refusing",
                        "see 'belljar doctor', or say transparent = \"auto\"");
  }
  config.transparent = ways->transparent.there();
  config.transparent_v6 = ways->transparent.v6;
  const std::string encoded = guest::encode(config);
  std::string_view unsent = encoded;
  BELLJAR_TRY(send_config(config_out.get(), unsent, MSG_DONTWAIT));
  if (meanwhile) BELLJAR_TRY(meanwhile());
  keeper->let_enter(group != nullptr ? group->entries() : std::vector<int>(), null.get());
  BELLJAR_TRY(keeper->wait());
  Guest guest;
  guest.pidfd_ = keeper->take_pidfd();
  guest.control_ = keeper->take_control();
  guest.pid_ = keeper->pid();
  guest.keeper_ = std::move(keeper);
  config_in.reset();
  BELLJAR_TRY(send_config(config_out.get(), unsent, 0));
  guest.listener_ = std::move(ways->listener);
  guest.transparent_ = std::move(ways->transparent);
  BELLJAR_ASSIGN(guest.scratch_, take_descriptor(guest.control_.get(), "take the guest's scratch", MSG_DONTWAIT));
  return guest;
}

}  // namespace belljar::tiers::jail
