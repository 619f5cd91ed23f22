#include "guest/probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/fd.h"
#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "guest/entrusted.h"
#include "guest/inner_sandbox.h"
#include "guest/mountinfo.h"
#include "guest/transparent_check.h"

namespace belljar::guest {
namespace {

void put(auto& field, std::string_view text) {
  const size_t size = std::min(text.size(), field.size() - 1);
  std::memcpy(field.data(), text.data(), size);
  field[size] = '\0';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

// The value of `Key:` in /proc/self/status.
std::string_view status_field(std::string_view status, std::string_view key) {
  while (!status.empty()) {
    const std::string_view line = status.substr(0, status.find('\n'));
    if (line.size() > key.size() && line[key.size()] == ':' && line.starts_with(key)) {
      return trimmed(line.substr(key.size() + 1));
    }
    status.remove_prefix(std::min(line.size() + 1, status.size()));
  }
  return {};
}

class Probe {
 public:
  Probe(const Config& config, const Observed& observed) : config_(config), observed_(observed) {}
  ProbeRecord run();

 private:
  using Step = bool (Probe::*)();

  bool fail(std::string_view subject, std::string_view expected, std::string_view found, int code = 0) {
    put(record_.subject, subject);
    put(record_.expected, expected);
    put(record_.found, found);
    record_.code = code;
    return false;
  }
  bool must_equal(std::string_view subject, std::string_view expected, std::string_view found) {
    return expected == found || fail(subject, expected, found);
  }
  // `result` is of a call that the filter must have refused with `wanted`.
  bool must_be_refused(std::string_view call, long result, int wanted) {
    const int code = errno;
    if (result >= 0) return fail(call, strerrorname_np(wanted), "it was carried out");
    return code == wanted || fail(call, strerrorname_np(wanted), strerrorname_np(code), code);
  }

  bool first_process();
  bool namespaces();
  bool identity();
  bool host_root();
  bool groups();
  bool capabilities();
  bool no_new_privileges();
  bool seccomp();
  bool set_id_bits();
  bool terminal_injection();
  bool namespace_limit();
  bool not_dumpable();
  bool parent_death_signal();
  bool descriptors();
  bool keyring();
  bool mounts();
  [[nodiscard]] size_t expected_at(std::string_view path, size_t hint) const;
  bool mount_is_strict(const MountEntry& entry, const ExpectedMount& expected, bool below);
  bool is_the_one(const ExpectedMount& expected);
  bool proc();
  bool scratch();
  bool tmpfs_ceilings();
  bool as_started(const char* key, std::string_view wanted);
  bool work_folder();
  bool hostname();
  bool interfaces();
  bool loopback();
  bool way_out();
  bool redirect();
  bool resolver();
  bool as_found(const Finding& found);
  bool landlock();
  bool limits();
  bool limit_is(const char* name, int resource, uint64_t wanted);
  bool entrusted();

  const Config& config_;
  const Observed& observed_;
  ResolverQuestion question_;
  std::string status_;
  ProbeRecord record_;
};

bool Probe::first_process() {
  return must_equal("getpid", "1", std::to_string(::getpid()));
}

bool Probe::namespaces() {
  const base::Fd folder(::open("/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail("/proc/self/ns", "readable", strerrorname_np(errno), errno);
  for (size_t i = 0; i < kNamespaceNames.size(); ++i) {
    struct stat found{};
    if (::fstatat(folder.get(), kNamespaceNames[i], &found, 0) != 0) {
      return fail(kNamespaceNames[i], "readable", strerrorname_np(errno), errno);
    }
    const uint64_t host = i < config_.host_namespaces.size() ? config_.host_namespaces[i] : 0;
    if (host != 0 && host == found.st_ino) return fail(kNamespaceNames[i], "an own namespace", "the launcher's");
  }
  return true;
}

bool Probe::identity() {
  const auto four = [](uint32_t id) {
    const std::string text = std::to_string(id);
    return text + '\t' + text + '\t' + text + '\t' + text;
  };
  record_.uid = ::getuid();
  record_.gid = ::getgid();
  return must_equal("uid", four(config_.uid), status_field(status_, "Uid")) &&
         must_equal("gid", four(config_.gid), status_field(status_, "Gid"));
}

bool Probe::host_root() {
  // An engine without user namespaces maps every id to itself; identity() has seen which it is.
  if (config_.container) return ::getuid() != 0 || fail("uid", "not root", "0");
  for (const char* path : {"/proc/self/uid_map", "/proc/self/gid_map"}) {
    const auto map = base::read_file(path);
    if (!map) return fail(path, "readable", "", map.error().code);
    // One line: the first id inside, the first outside, how many (user_namespaces(7)).
    std::array<uint64_t, 3> numbers{};
    size_t words = 0;
    for (const std::string_view word : base::split(trimmed(*map), ' ')) {
      if (word.empty()) continue;
      if (words == numbers.size() || !base::parse_uint(word, numbers[words]))
        return fail(path, "one id", trimmed(*map));
      ++words;
    }
    if (words != numbers.size() || numbers[2] != 1) return fail(path, "one id", trimmed(*map));
    // Of a namespace between this one and the host's this is no more than its own number.
    if (config_.made_by_other) continue;
    if (numbers[1] == 0) return fail(path, "an id that is not root outside", "0");
  }
  return true;
}

bool Probe::groups() {
  const int count = ::getgroups(0, nullptr);
  record_.groups = count < 0 ? 0 : static_cast<uint32_t>(count);
  if (config_.container && count == 1) {
    // Engines since 20.10.18 name the primary group among them.
    gid_t group = 0;
    return ::getgroups(1, &group) == 1 &&
           must_equal("supplementary group", std::to_string(config_.gid), std::to_string(group));
  }
  if (config_.container) return must_equal("supplementary groups", "0", std::to_string(count));
  return !config_.launched_by_root || must_equal("supplementary groups", "0", std::to_string(count));
}

bool Probe::capabilities() {
  return std::ranges::all_of(std::array{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}, [&](const char* set) {
    return must_equal(set, "0000000000000000", status_field(status_, set)) && as_started(set, "0000000000000000");
  });
}

// What the engine made, before init took anything away itself.
bool Probe::as_started(const char* key, std::string_view wanted) {
  return !config_.container ||
         must_equal(std::string(key) + " at the start", wanted, status_field(observed_.status_at_start, key));
}

bool Probe::no_new_privileges() {
  if (!as_started("NoNewPrivs", "1")) return false;
  return must_equal("NoNewPrivs", "1", status_field(status_, "NoNewPrivs"));
}

bool Probe::seccomp() {
  if (!as_started("Seccomp", "2")) return false;
  if (!must_equal("Seccomp", "2", status_field(status_, "Seccomp"))) return false;
  uint64_t filters = 0;
  if (base::parse_uint(status_field(status_, "Seccomp_filters"), filters)) {
    record_.seccomp_filters = static_cast<uint32_t>(filters);
  }
  // Without the filter the namespace limit would answer ENOSPC, and a family that every kernel has a socket.
  return (config_.nested || must_be_refused("unshare", ::unshare(CLONE_NEWUSER), EPERM)) &&
         must_be_refused("socket(NETLINK_GENERIC)", ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC),
                         EAFNOSUPPORT);
}

bool Probe::set_id_bits() {
  const base::Fd file(::memfd_create("set-id", MFD_CLOEXEC));
  if (!file) return fail("memfd_create", "a file", strerrorname_np(errno), errno);
  return must_be_refused("fchmod 4700", ::fchmod(file.get(), S_ISUID | S_IRWXU), EPERM) &&
         must_be_refused("fchmod 2700", ::fchmod(file.get(), S_ISGID | S_IRWXU), EPERM);
}

bool Probe::terminal_injection() {
  // On a socket the kernel would say ENOTTY: EPERM can only be the filter's.
  char byte = 'x';
  return must_be_refused("ioctl(TIOCSTI)", ::ioctl(kControlFd, TIOCSTI, &byte), EPERM) &&
         must_be_refused("ioctl(TIOCLINUX)", ::ioctl(kControlFd, TIOCLINUX, &byte), EPERM);
}

bool Probe::namespace_limit() {
  if (config_.made_by_other) {
    // The limit is one of a user namespace around this one: it shows when it is tried (namespaces(7), /proc/sys/user).
    errno = observed_.user_namespace_error;
    return must_be_refused("a user namespace inside", errno == 0 ? 0 : -1, ENOSPC);
  }
  // An engine's /proc/sys is nobody's to write; the filter keeps the guest from making namespaces.
  if (config_.container) {
    struct statvfs found{};
    return (::statvfs("/proc/sys", &found) == 0 && (found.f_flag & ST_RDONLY) != 0) ||
           fail("/proc/sys", "read-only", "writable");
  }
  const auto limit = base::read_file("/proc/sys/user/max_user_namespaces");
  if (!limit) return fail("max_user_namespaces", "0", "unreadable", limit.error().code);
  if (!config_.nested) return must_equal("max_user_namespaces", "0", trimmed(*limit));
  record_.nested = 1;
  const int error = try_inner_sandbox();
  return must_equal("max_user_namespaces", kNestedNamespaces, trimmed(*limit)) &&
         (error == 0 ||
          fail("a sandbox inside", "a user namespace and a proc of its own", strerrorname_np(error), error));
}

bool Probe::not_dumpable() {
  return must_equal("dumpable", "0", std::to_string(::prctl(PR_GET_DUMPABLE)));
}

bool Probe::parent_death_signal() {
  if (config_.container) return true;  // its parent is the engine's; the end of the control socket ends it
  int signal = 0;
  ::prctl(PR_GET_PDEATHSIG, &signal);
  return must_equal("parent-death signal", std::to_string(SIGKILL), std::to_string(signal));
}

bool Probe::descriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return fail("/proc/self/fd", "readable", strerrorname_np(errno), errno);
  const auto& own = observed_.own_descriptors;
  std::string extra;
  while (const dirent* entry = ::readdir(folder)) {
    uint64_t number = 0;
    if (!base::parse_uint(entry->d_name, number)) continue;
    const int fd = static_cast<int>(number);
    if (fd > STDERR_FILENO && fd != ::dirfd(folder) && std::ranges::find(own, fd) == own.end()) extra = entry->d_name;
  }
  ::closedir(folder);
  return extra.empty() || fail("descriptor", "none inherited", extra);
}

bool Probe::keyring() {
  if (config_.host_keyring == 0) return true;
  return observed_.session_keyring > 0 && observed_.session_keyring != config_.host_keyring
             ? true
             : fail("session keyring", "an own one", "the launcher's");
}

bool Probe::mount_is_strict(const MountEntry& entry, const ExpectedMount& expected, bool below) {
  if (expected.tmpfs && !below && entry.type != "tmpfs") return fail(entry.path, "a tmpfs", entry.type);
  if (!expected.plain) {
    if (!entry.has("nosuid")) return fail(entry.path, "nosuid", entry.options);
    if (!entry.has("nodev") && (!expected.device || below)) return fail(entry.path, "nodev", entry.options);
    // Of the folder that the host keeps, only a copy may be writable.
    if (expected.private_copy && !below && entry.type != "overlay" && !entry.has("ro")) {
      return fail(entry.path, "a private copy", entry.type);
    }
  }
  if (!expected.writable && !entry.has("ro")) return fail(entry.path, "read-only", entry.options);
  return below || expected.inode == 0 || is_the_one(expected);
}

// Who set the guest up may have followed a link that was not there when the plan was made.
bool Probe::is_the_one(const ExpectedMount& expected) {
  struct stat found{};
  const std::string path(expected.path);
  if (::lstat(path.c_str(), &found) != 0) return fail(path, "what the plan says", strerrorname_np(errno), errno);
  return (found.st_dev == expected.lies_on && found.st_ino == expected.inode) ||
         fail(path, "the file or folder of the plan", "another one");
}

// The index of what answers for a mount at `path`: that very mount, else the deepest bind that holds it. Mounts come in
// the order they were made, so the search begins at `hint`.
size_t Probe::expected_at(std::string_view path, size_t hint) const {
  const std::vector<ExpectedMount>& all = config_.mounts;
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t at = (hint + i) % all.size();
    if (all[at].path == path) return at;
  }
  size_t best = all.size();
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].below || !base::is_within(path, all[i].path)) continue;
    if (best == all.size() || all[i].path.size() > all[best].path.size()) best = i;
  }
  return best;
}

bool Probe::mounts() {
  const auto text = base::read_file("/proc/self/mountinfo", size_t{16} << 20U);
  if (!text) return fail("/proc/self/mountinfo", "readable", "", text.error().code);
  const std::vector<MountEntry> entries = parse_mountinfo(*text);
  record_.mounts = static_cast<uint32_t>(entries.size());
  std::vector<bool> seen(config_.mounts.size());
  size_t hint = 0;
  for (const MountEntry& entry : entries) {
    const size_t at = expected_at(entry.path, hint);
    if (at == config_.mounts.size()) return fail(entry.path, "no such mount", entry.type);
    const ExpectedMount& match = config_.mounts[at];
    const bool itself = entry.path == match.path;
    if (itself) {
      seen[at] = true;
      hint = at + 1;
    }
    if (!mount_is_strict(entry, match, !itself)) return false;
  }
  for (const char* socket : {"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock"}) {
    struct stat found{};
    if (config_.container && ::lstat(socket, &found) == 0) return fail(socket, "no socket of an engine", "there");
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) continue;
    // What a mask hides need not be there; but when it is, it has to be hidden.
    struct stat found{};
    const std::string path(config_.mounts[i].path);
    if (config_.mounts[i].optional && ::lstat(path.c_str(), &found) != 0) continue;
    return fail(path, "a mount of its own", "none");
  }
  return true;
}

bool Probe::proc() {
  std::array<char, 32> link{};
  const ssize_t size = ::readlink("/proc/self", link.data(), link.size());
  return must_equal("/proc/self", "1", std::string_view(link.data(), size < 0 ? 0 : static_cast<size_t>(size)));
}

// Each tmpfs by its own ceilings, which the kernel rounds up to whole pages (tmpfs(5)).
bool Probe::tmpfs_ceilings() {
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const ExpectedMount& mount : config_.mounts) {
    if (!mount.tmpfs) continue;
    struct statvfs found{};
    const std::string path(mount.path);
    if (::statvfs(path.c_str(), &found) != 0) return fail(path, "a bounded tmpfs", strerrorname_np(errno), errno);
    const uint64_t wanted = (mount.bytes + page - 1) / page * page;
    if (!must_equal("bytes of " + path, std::to_string(wanted), std::to_string(found.f_blocks * found.f_frsize))) {
      return false;
    }
    if (mount.files != 0 &&
        !must_equal("files of " + path, std::to_string(mount.files), std::to_string(found.f_files))) {
      return false;
    }
  }
  return observed_.left_in_scratch.empty() || fail(observed_.left_in_scratch, "an empty scratch", "there");
}

bool Probe::scratch() {
  if (config_.container) return tmpfs_ceilings();
  struct statvfs found{};
  if (::statvfs("/tmp", &found) != 0) return fail("/tmp", "a bounded tmpfs", strerrorname_np(errno), errno);
  // The kernel rounds the size up to whole pages (tmpfs(5)).
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t wanted = (config_.scratch_bytes + page - 1) / page * page;
  return must_equal("bytes of /tmp", std::to_string(wanted), std::to_string(found.f_blocks * found.f_frsize)) &&
         (config_.scratch_files == 0 ||
          must_equal("files of /tmp", std::to_string(config_.scratch_files), std::to_string(found.f_files)));
}

bool Probe::work_folder() {
  if (!config_.metadata.empty()) return as_found(check_task_folders(config_));
  struct stat found{};
  const std::string path(config_.work_folder);
  if (::stat(path.c_str(), &found) != 0) return fail(path, "the work folder", strerrorname_np(errno), errno);
  if (found.st_dev != config_.work_device || found.st_ino != config_.work_inode) {
    return fail(path, "the work folder of the plan", "another folder");
  }
  // An ordinary user may work in a folder of somebody else's; through the id map of a root launch it is the guest's.
  return !config_.launched_by_root || found.st_uid == config_.uid ||
         fail(path, "owned by the guest", std::to_string(found.st_uid));
}

bool Probe::hostname() {
  utsname name{};
  ::uname(&name);
  return must_equal("hostname", config_.hostname, name.nodename);
}

bool Probe::interfaces() {
  if (!config_.isolated_network) return true;
  const auto text = base::read_file("/proc/self/net/dev");
  if (!text) return fail("/proc/self/net/dev", "readable", "", text.error().code);
  const base::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const std::string_view line : base::split(*text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = trimmed(line.substr(0, colon));
    // Tunnel modules put inert fallback devices into every network namespace; only what is up can carry anything.
    ifreq request{};
    std::memcpy(request.ifr_name, name.data(), std::min(name.size(), sizeof request.ifr_name - 1));
    if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return fail(name, "flags", strerrorname_np(errno), errno);
    if (name != "lo" && (request.ifr_flags & IFF_UP) != 0) return fail(name, "no interface but lo", "up");
    if (name == "lo" && (request.ifr_flags & IFF_UP) == 0) return fail("lo", "up", "down");
  }
  return true;
}

bool Probe::loopback() {
  if (!config_.isolated_network) return true;
  const base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return fail("the way out", "a socket", strerrorname_np(errno), errno);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(config_.proxy_port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // The listener of the way out holds the port already.
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return fail("the way out", "a listener on 127.0.0.1:" + std::to_string(config_.proxy_port), "none");
  }
  return errno == EADDRINUSE || fail("the way out", "EADDRINUSE", strerrorname_np(errno), errno);
}

bool Probe::way_out() {
  if (!config_.isolated_network) return true;
  // Connecting a datagram socket only looks up a route; nothing is sent (connect(2)).
  static constexpr std::pair<const char*, uint32_t> kHosts[] = {{"192.0.2.1", 0xc0000201},
                                                                {"169.254.169.254", 0xa9fea9fe}};
  for (const auto& [host, number] : kHosts) {
    const base::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) return fail(host, "a socket", strerrorname_np(errno), errno);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(53);
    address.sin_addr.s_addr = htonl(number);
    const int result = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    if (!must_be_refused(std::string("route to ") + host, result, ENETUNREACH)) return false;
  }
  return true;
}

bool Probe::as_found(const Finding& found) {
  return found.expected.empty() || fail(found.subject, found.expected, found.found, found.code);
}

bool Probe::redirect() {
  return !config_.transparent || as_found(check_redirect(config_.transparent_v6));
}

bool Probe::resolver() {
  return !config_.transparent || as_found(question_.check());
}

bool Probe::landlock() {
  record_.landlock_abi = config_.landlock_abi;
  if (config_.landlock_abi == 0 || config_.nested) return true;
  return observed_.landlock_write_error == EACCES ||
         fail("create a file outside the granted trees", "EACCES",
              observed_.landlock_write_error == 0 ? "it was carried out"
                                                  : strerrorname_np(observed_.landlock_write_error),
              observed_.landlock_write_error);
}

bool Probe::limit_is(const char* name, int resource, uint64_t wanted) {
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
  return must_equal(name, std::to_string(wanted), std::to_string(limit.rlim_cur)) &&
         must_equal(name, std::to_string(wanted), std::to_string(limit.rlim_max));
}

bool Probe::limits() {
  // 1, not 0: a core pattern with a pipe ignores 0 but not 1 (core(5)).
  if (!limit_is("RLIMIT_CORE", RLIMIT_CORE, 1)) return false;
  if (config_.processes != 0 && !limit_is("RLIMIT_NPROC", RLIMIT_NPROC, config_.processes)) return false;
  if (config_.open_files != 0 && !limit_is("RLIMIT_NOFILE", RLIMIT_NOFILE, config_.open_files)) return false;
  return config_.file_bytes == 0 || limit_is("RLIMIT_FSIZE", RLIMIT_FSIZE, config_.file_bytes);
}

bool Probe::entrusted() {
  return as_found(check_files(config_)) && as_found(check_environment(config_, observed_.environment));
}

ProbeRecord Probe::run() {
  static constexpr std::pair<Check, Step> kSteps[] = {
      {Check::kFirstProcess, &Probe::first_process},
      {Check::kNamespaces, &Probe::namespaces},
      {Check::kIdentity, &Probe::identity},
      {Check::kHostRoot, &Probe::host_root},
      {Check::kGroups, &Probe::groups},
      {Check::kCapabilities, &Probe::capabilities},
      {Check::kNoNewPrivileges, &Probe::no_new_privileges},
      {Check::kSeccomp, &Probe::seccomp},
      {Check::kSetIdBits, &Probe::set_id_bits},
      {Check::kTerminalInjection, &Probe::terminal_injection},
      {Check::kNamespaceLimit, &Probe::namespace_limit},
      {Check::kNotDumpable, &Probe::not_dumpable},
      {Check::kParentDeathSignal, &Probe::parent_death_signal},
      {Check::kDescriptors, &Probe::descriptors},
      {Check::kKeyring, &Probe::keyring},
      {Check::kMounts, &Probe::mounts},
      {Check::kProc, &Probe::proc},
      {Check::kScratch, &Probe::scratch},
      {Check::kWorkFolder, &Probe::work_folder},
      {Check::kHostname, &Probe::hostname},
      {Check::kInterfaces, &Probe::interfaces},
      {Check::kLoopback, &Probe::loopback},
      {Check::kWayOut, &Probe::way_out},
      {Check::kRedirect, &Probe::redirect},
      {Check::kResolver, &Probe::resolver},
      {Check::kLandlock, &Probe::landlock},
      {Check::kLimits, &Probe::limits},
      {Check::kEntrusted, &Probe::entrusted},
  };
  static_assert(std::size(kSteps) == static_cast<size_t>(Check::kCount) - 1, "a check is missing from the probe");
  if (auto status = base::read_file("/proc/self/status")) status_ = std::move(*status);
  for (const auto& [check, step] : kSteps) {
    // From here on there is a socket more, so after that check; the answer is read late.
    if (check == Check::kKeyring && config_.transparent) question_.ask();
    if (!(this->*step)()) {
      record_.failed = static_cast<uint32_t>(check);
      return record_;
    }
    record_.passed |= uint64_t{1} << static_cast<uint32_t>(check);
  }
  return record_;
}

}  // namespace

ProbeRecord run_probe(const Config& config, const Observed& observed) {
  return Probe(config, observed).run();
}

const char* check_name(Check check) {
  static constexpr std::array<const char*, static_cast<size_t>(Check::kCount)> kNames = {"none",
                                                                                         "first-process",
                                                                                         "namespaces",
                                                                                         "identity",
                                                                                         "host-root",
                                                                                         "groups",
                                                                                         "capabilities",
                                                                                         "no-new-privileges",
                                                                                         "seccomp",
                                                                                         "set-id-bits",
                                                                                         "terminal-injection",
                                                                                         "namespace-limit",
                                                                                         "not-dumpable",
                                                                                         "parent-death",
                                                                                         "descriptors",
                                                                                         "keyring",
                                                                                         "mounts",
                                                                                         "proc",
                                                                                         "scratch",
                                                                                         "work-folder",
                                                                                         "hostname",
                                                                                         "interfaces",
                                                                                         "loopback",
                                                                                         "way-out",
                                                                                         "redirect",
                                                                                         "resolver",
                                                                                         "landlock",
                                                                                         "limits",
                                                                                         "entrusted"};
  const auto index = static_cast<size_t>(check);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace belljar::guest
