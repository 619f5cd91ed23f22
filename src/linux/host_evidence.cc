#include "linux/host_evidence.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "linux/host_cgroups.h"
#include "linux/host_trials.h"
#include "linux/landlock_domain.h"
#include "linux/seccomp_filter.h"

namespace belljar::linux {
namespace {

std::optional<uint64_t> sysctl(const std::string& name) {
  auto text = base::read_file("/proc/sys/" + name);
  if (!text) return std::nullopt;
  while (!text->empty() && text->back() == '\n') text->pop_back();
  uint64_t value = 0;
  if (!base::parse_uint(*text, value)) return std::nullopt;
  return value;
}

std::string find_in_path(const std::string& path, const std::string& name) {
  for (const std::string_view folder : base::split(path, ':')) {
    if (!folder.starts_with('/')) continue;
    std::string candidate = std::string(folder) + "/" + name;
    struct stat info{};
    if (stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return {};
}

// The root folder differs from PID 1's, where one may look at that; or it is no mount point, which only a chroot can
// bring about. A chroot into a mount point stays unseen by an ordinary user.
bool in_chroot() {
  struct stat own{};
  struct stat init{};
  if (stat("/", &own) == 0 && stat("/proc/1/root/", &init) == 0 &&
      (own.st_ino != init.st_ino || own.st_dev != init.st_dev)) {
    return true;
  }
  const auto mounts = base::read_file("/proc/self/mountinfo");
  if (!mounts) return false;
  for (const std::string_view line : base::split(*mounts, '\n')) {
    const auto words = base::split(line, ' ');
    if (words.size() > 4 && words[4] == "/") return false;
  }
  return true;
}

int connect_to(const std::string& socket_path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (socket_path.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
  memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  const base::Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ? 0 : errno;
}

void look_at_docker(HostEvidence& out, const std::string& path, const std::string& docker_host) {
  out.docker = find_in_path(path, "docker");
  constexpr std::string_view kUnix = "unix://";
  out.docker_socket = docker_host.empty() ? "/var/run/docker.sock" : docker_host;
  if (out.docker_socket.starts_with(kUnix)) out.docker_socket.erase(0, kUnix.size());
  // An engine behind tcp:// or ssh:// is another machine: its mounts would not be of this one.
  out.docker_error = out.docker_socket.starts_with('/') ? connect_to(out.docker_socket) : EAFNOSUPPORT;
}

}  // namespace

HostEvidence gather_evidence(const std::string& path, const std::string& docker_host) {
  HostEvidence out;
  utsname names{};
  if (uname(&names) == 0) {
    out.kernel = names.release;
    out.machine = names.machine;
  }
  out.uid = geteuid();
  const bool as_root = out.uid == 0;
  const base::Fd here(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat info{};
  if (here && fstat(here.get(), &info) == 0) {
    out.folder = base::real_path(here.get()).value_or(std::string{});
    out.folder_uid = info.st_uid;
  }
  std::array<char, 4096> link{};
  const ssize_t size = readlink("/proc/self/exe", link.data(), link.size());
  if (size > 0) out.program.assign(link.data(), static_cast<size_t>(size));
  out.container = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0;
  out.chroot = in_chroot();
  out.seccomp_mode = seccomp_mode();

  out.unprivileged_userns_clone = sysctl("kernel/unprivileged_userns_clone");
  out.max_user_namespaces = sysctl("user/max_user_namespaces");
  out.apparmor_restrict_unprivileged_userns = sysctl("kernel/apparmor_restrict_unprivileged_userns");

  out.user_namespace = try_user_namespace();
  out.namespaces = try_namespaces(as_root);
  out.mounts = try_mounts(as_root);
  out.proc = try_proc(as_root);
  out.overlay = try_overlay(as_root);
  out.redirect = try_redirect(as_root);
  if (as_root && !out.folder.empty()) out.idmap = try_idmap(out.folder);
  out.seccomp = try_seccomp();

  out.landlock_abi = landlock_abi();
  if (out.landlock_abi == 0) {
    out.landlock_error = syscall(SYS_landlock_create_ruleset, nullptr, 0, 1U) < 0 ? errno : 0;
  }
  out.cgroups = look_at_cgroups();
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) out.open_files = files.rlim_max;
  out.bwrap = find_bubblewrap(path);
  if (out.bwrap.fault.empty()) out.bwrap_said = try_bubblewrap(out.bwrap);
  look_at_docker(out, path, docker_host);
  return out;
}

}  // namespace belljar::linux
