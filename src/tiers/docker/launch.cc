#include "tiers/docker/launch.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "guest/protocol.h"
#include "linux/descriptor_passing.h"
#include "linux/landlock_domain.h"
#include "tiers/docker/engine_json.h"
#include "tiers/docker/validate_json.h"

namespace belljar::tiers::docker {
namespace {

constexpr std::string_view kFilesFolder = "/run/belljar-files";
constexpr uint64_t kRunBytes = 65536;  // of /run: mount points and nothing else
constexpr uint64_t kRunFiles = 10'000;
constexpr uint64_t kNanosPerPercent = 10'000'000;

// What of the session's scratch each folder may take, in eighths: together all of it.
uint64_t eighths_of(const plan::Plan& plan, const std::string& target) {
  if (target == plan.private_home) return 4;
  return target == "/tmp" ? 2 : 1;
}

class Preparation {
 public:
  Preparation(const plan::Plan& plan, const Copies& copies, Meeting& meeting, Prepared& out)
      : plan_(plan), copies_(copies), meeting_(meeting), out_(out) {}

  base::Status add_mounts();

 private:
  base::Status add(const plan::Mount& mount);
  base::Status bind(const plan::Mount& mount, std::string source, bool writable);
  void scratch(const std::string& target);
  [[nodiscard]] base::Result<std::string> host_source(const std::string& target) const;
  [[nodiscard]] std::string place_of(const std::string& target);
  std::string_view keep(std::string text) { return out_.text.emplace_back(std::move(text)); }

  const plan::Plan& plan_;
  const Copies& copies_;
  Meeting& meeting_;
  Prepared& out_;
  std::map<std::string, std::string> moved_;  // from where in the home to below kFilesFolder
  std::string empty_file_;
  std::string empty_folder_;
  size_t files_ = 0;
};

// What the plan found there, by a path without links: one that is on it now came later.
base::Result<base::Fd> open_source(const std::string& path) {
  auto source = base::open_resolved(AT_FDCWD, path, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (!source) return base::system_error("mount", path, source.error().code, "start again");
  return source;
}

base::Result<std::string> real_source(const std::string& path) {
  BELLJAR_ASSIGN(const base::Fd source, open_source(path));
  return base::real_path(source.get());
}

// An engine makes a mount's missing folders as root, and in the home the agent could then not write beside it. So what
// is mounted in the home lies elsewhere, and init makes a link to it. The work folder has to be at its own path.
std::string Preparation::place_of(const std::string& target) {
  for (const auto& [from, to] : moved_) {
    if (base::is_within(target, from)) return to + target.substr(from.size());
  }
  if (!base::is_within(target, plan_.private_home) || base::is_within(target, plan_.work_folder) ||
      base::is_within(plan_.work_folder, target)) {
    return target;
  }
  std::string to = std::string(kFilesFolder) + "/" + std::to_string(moved_.size());
  moved_.emplace(target, to);
  out_.config.home_entries.push_back({keep(target), keep(to), true});
  return to;
}

base::Status Preparation::bind(const plan::Mount& mount, std::string source, bool writable) {
  std::string target = place_of(mount.target);
  if (source.contains('\0') || target.contains('\0') || source.contains('\n') || !base::is_utf8(source) ||
      !base::is_utf8(target)) {
    return base::refuse("mount", mount.target, "an engine cannot be told such a path, refusing");
  }
  if (writable) out_.config.writable.push_back(keep(target));
  out_.profile.binds.push_back({std::move(source), std::move(target), writable});
  return {};
}

void Preparation::scratch(const std::string& target) {
  const uint64_t share = eighths_of(plan_, target);
  const uint64_t bytes = plan_.limits.scratch_bytes / 8 * share;
  if (target == "/dev/shm") {
    out_.profile.shm_bytes = bytes;
  } else {
    TmpfsMount mount{.target = target, .bytes = bytes, .files = plan_.limits.scratch_files / 8 * share};
    mount.mode = target == plan_.private_home ? 0700 : 01777;
    mount.uid = out_.profile.uid;
    mount.gid = out_.profile.gid;
    out_.profile.tmpfs.push_back(std::move(mount));
  }
  out_.config.writable.push_back(keep(target));
}

// What the guest sees at `target`, on the host: a path below one of the binds that came before.
base::Result<std::string> Preparation::host_source(const std::string& target) const {
  const plan::Mount* best = nullptr;
  for (const plan::Mount& mount : plan_.mounts) {
    if (mount.kind != plan::MountKind::kBind || !base::is_within(target, mount.target)) continue;
    if (best == nullptr || mount.target.size() > best->target.size()) best = &mount;
  }
  if (best == nullptr) return base::refuse("mount", target, "nothing of the host is there, refusing");
  return real_source(best->source + target.substr(best->target.size()));
}

base::Status Preparation::add(const plan::Mount& mount) {
  switch (mount.kind) {
    case plan::MountKind::kBind: {
      BELLJAR_ASSIGN(std::string source, real_source(mount.source));
      return bind(mount, std::move(source), mount.writable);
    }
    case plan::MountKind::kReadOnly: {
      BELLJAR_ASSIGN(std::string source, host_source(mount.target));
      return bind(mount, std::move(source), false);
    }
    case plan::MountKind::kMask: {
      BELLJAR_ASSIGN(const std::string source, host_source(mount.target));
      struct stat found{};
      if (::lstat(source.c_str(), &found) != 0) return base::system_error("open", source, errno);
      std::string& empty = S_ISDIR(found.st_mode) ? empty_folder_ : empty_file_;
      if (empty.empty()) {
        BELLJAR_ASSIGN(
            empty, S_ISDIR(found.st_mode) ? meeting_.add_folder("empty-folder") : meeting_.add_file("empty-file", ""));
      }
      return bind(mount, empty, false);
    }
    case plan::MountKind::kFile: {
      BELLJAR_ASSIGN(std::string source, meeting_.add_file("file-" + std::to_string(files_++), mount.source));
      return bind(mount, std::move(source), false);
    }
    case plan::MountKind::kCopy: {
      const auto found = copies_.find(mount.target);
      if (found != copies_.end()) out_.config.home_entries.push_back({mount.target, found->second, false});
      return {};
    }
    case plan::MountKind::kScratch:
      scratch(mount.target);
      return {};
    default:
      return base::refuse("mount", mount.target, "an engine cannot make it, refusing");
  }
}

base::Status Preparation::add_mounts() {
  out_.profile.binds.push_back({meeting_.path(), guest::kMeetingFolder, false});
  out_.profile.tmpfs.push_back({.target = guest::kMeetingParent,
                                .bytes = kRunBytes,
                                .files = kRunFiles,
                                .mode = 0755,
                                .uid = out_.profile.uid,
                                .gid = out_.profile.gid});
  for (const plan::Mount& mount : plan_.mounts) BELLJAR_TRY(add(mount));
  return {};
}

Profile profile_of(const plan::Plan& plan, const Image& image, std::string_view session, const EngineInfo& info) {
  Profile out;
  out.name = container_name(session);
  out.image_id = image.id;
  out.hostname = plan.hostname;
  out.uid = plan.identity.host_uid;
  out.gid = plan.identity.host_gid;
  out.entrypoint = {std::string(guest::kMeetingFolder) + "/belljar-guest"};
  out.command = {"container"};
  out.working_folder = "/";
  out.env = image.env;  // of init alone: the agent's own is told by the meeting, so no secret is the engine's to show
  out.labels = image.labels;
  out.labels[kSessionLabel] = session;
  out.network = plan.network == policy::Network::kDeny ? ContainerNetwork::kNone : ContainerNetwork::kBridge;
  out.ulimits = {{"nofile", plan.limits.open_files, plan.limits.open_files}};
  out.memory_bytes = plan.limits.memory_bytes.value_or(0);
  out.nano_cpus = plan.limits.cpu_percent.value_or(0) * kNanosPerPercent;
  out.pids = plan.limits.pids.value_or(0);
  out.seccomp_by_name = knows_builtin_seccomp(info);
  return out;
}

base::Result<base::Fd> config_file(const guest::Config& config) {
  base::Fd out(::memfd_create("belljar-config", MFD_CLOEXEC));
  const std::string encoded = guest::encode(config);
  if (!out || !base::write_all(out.get(), encoded) || ::lseek(out.get(), 0, SEEK_SET) != 0) {
    return base::system_error("tell the guest its plan", "", errno);
  }
  return out;
}

base::Result<std::string> create(const Engine& engine, const Prepared& prepared, const base::Deadline& deadline) {
  constexpr std::string_view kOperation = "create the container";
  const std::string& name = prepared.profile.name;
  const std::string target = "/containers/create?name=" + percent_encode(name);
  BELLJAR_ASSIGN(const Answered answer, require(engine.post(target, prepared.request, deadline), kOperation, name));
  auto id = read_id(answer.body);
  if (!id) return base::refuse(kOperation, name, "the container engine named none, refusing");
  return std::move(*id);
}

base::Result<base::Fd> handed_out(int control, std::string_view what, const base::Deadline& deadline) {
  pollfd wait{control, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&wait, 1, deadline.poll_timeout());
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return base::refuse(what, "", "it did not arrive in time, refusing");
  return jail::take_descriptor(control, what, MSG_DONTWAIT);
}

}  // namespace

std::string container_name(std::string_view session) {
  return "belljar-" + std::string(session);
}

std::string session_label(std::string_view session) {
  return std::string(kSessionLabel) + "=" + std::string(session);
}

guest::Config config_of(const plan::Plan& plan) {
  guest::Config config;
  config.container = true;
  config.isolated_network = plan.network == policy::Network::kDeny;
  config.proxy_port = plan.proxy_port;
  config.uid = plan.identity.guest_uid;
  config.gid = plan.identity.guest_gid;
  config.landlock_abi = static_cast<uint32_t>(linux::landlock_abi());
  if (!linux::landlock_features(static_cast<int>(config.landlock_abi)).files) config.landlock_abi = 0;
  config.open_files = plan.limits.open_files;
  config.file_bytes = plan.limits.file_bytes.value_or(0);
  config.hostname = plan.hostname;
  config.work_folder = plan.work_folder;
  config.chdir = plan.chdir;
  config.program = plan.program;
  config.home = plan.private_home;
  for (const std::string& word : plan.command) config.arguments.push_back(word);
  return config;
}

base::Status expect_mounts(Prepared& prepared) {
  auto& expected = prepared.config.mounts;
  expected.push_back({.path = "/", .plain = true});
  expected.push_back({.path = "/sys", .below = true, .plain = true});
  // runc leaves the tmpfs under the hierarchies of cgroup v1 writable, for root, who nobody is in there; what lies on
  // it must be read-only.
  expected.push_back({.path = "/sys/fs/cgroup", .writable = true, .optional = true, .plain = true});
  for (const char* path : {"/proc", "/dev"}) {
    expected.push_back({.path = path, .writable = true, .below = true, .plain = true});
  }
  expected.push_back({.path = "/dev/shm", .writable = true, .tmpfs = true, .bytes = prepared.profile.shm_bytes});
  // Made by the engine for every container, even without a network.
  for (const char* path : {"/etc/resolv.conf", "/etc/hostname", "/etc/hosts"}) {
    expected.push_back({.path = path, .optional = true, .plain = true});
  }
  for (const TmpfsMount& mount : prepared.profile.tmpfs) {
    expected.push_back(
        {.path = mount.target, .writable = true, .tmpfs = true, .bytes = mount.bytes, .files = mount.files});
  }
  // A volume has nosuid and nodev of its own, which runc forgets of a mount that it makes read-only.
  for (const VolumeMount& mount : prepared.profile.volumes) {
    expected.push_back({.path = mount.target,
                        .writable = mount.writable,
                        .plain = !mount.writable,
                        .tmpfs = true,
                        .bytes = mount.bytes,
                        .files = mount.files});
  }
  // An engine opens by path, as root, and follows what links are there by then: the guest sees which file it was.
  for (const BindMount& mount : prepared.profile.binds) {
    struct stat found{};
    BELLJAR_ASSIGN(const base::Fd source, open_source(mount.source));
    if (::fstat(source.get(), &found) != 0) return base::system_error("mount", mount.source, errno);
    expected.push_back({.path = mount.target,
                        .writable = mount.writable,
                        .below = mount.writable,
                        .lies_on = found.st_dev,
                        .inode = found.st_ino,
                        .plain = true});
  }
  return {};
}

base::Result<std::vector<uint64_t>> namespaces_to_leave() {
  return jail::own_namespaces(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP |
                              CLONE_NEWNET);
}

base::Result<Prepared> prepare(const plan::Plan& plan, const Copies& copies, std::string_view session, Meeting& meeting,
                               const Engine& engine, const Image& image) {
  BELLJAR_TRY(check_engine(engine.info()));
  if (image.id != plan.container.image_id) {
    return base::refuse("find the image", plan.container.image, "the plan was made for another one, refusing");
  }
  if (!image.volumes.empty()) {
    return base::refuse("use the image", plan.container.image,
                        "it makes a volume at '" + image.volumes.front() + "' that nothing bounds, refusing",
                        "use an image without VOLUME");
  }
  if (plan.identity.host_uid == 0) {
    return base::refuse("launch", plan.work_folder, "the guest would be root on the host, refusing");
  }
  Prepared out;
  out.profile = profile_of(plan, image, session, engine.info());
  out.config = config_of(plan);
  Preparation preparation(plan, copies, meeting, out);
  BELLJAR_TRY(preparation.add_mounts());
  BELLJAR_TRY(expect_mounts(out));
  for (const plan::EnvVar& variable : plan.env) {
    out.config.environment.push_back(out.text.emplace_back(variable.name + "=" + variable.value));
  }
  struct stat work{};
  if (::stat(plan.work_folder.c_str(), &work) != 0) return base::system_error("open", plan.work_folder, errno);
  out.config.work_device = work.st_dev;
  out.config.work_inode = work.st_ino;
  BELLJAR_ASSIGN(out.config.host_namespaces, namespaces_to_leave());
  out.request = create_request(out.profile);
  return out;
}

base::Result<jail::Guest> start(const Engine& engine, Prepared& prepared, Meeting& meeting, const jail::Stdio& stdio,
                                const base::Deadline& deadline) {
  const auto unchanged = [&] { return prepared.unchanged ? prepared.unchanged() : base::Status(); };
  BELLJAR_TRY(unchanged());
  BELLJAR_ASSIGN(const std::string id, create(engine, prepared, deadline));
  const std::string path = "/containers/" + id;
  BELLJAR_ASSIGN(const Answered inspected,
                 require(engine.ask("GET", path + "/json", deadline), "look at the container", id));
  if (prepared.check) BELLJAR_TRY(validate(prepared.profile, inspected.body));
  BELLJAR_TRY(unchanged());
  BELLJAR_TRY(require(engine.ask("POST", path + "/start", deadline), "start the container", id));
  BELLJAR_ASSIGN(Visitor visitor, meeting.receive(prepared.profile.uid, id, deadline));
  BELLJAR_TRY(unchanged());
  guest::Config config = prepared.config;
  config.terminal = stdio.fds[0] < 0;
  config.terminal_stderr = stdio.fds[2] < 0;
  BELLJAR_ASSIGN(const base::Fd file, config_file(config));
  const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  std::array<int, 4> given{file.get()};
  for (size_t i = 0; i < 3; ++i) given[i + 1] = stdio.fds[i] < 0 ? null.get() : stdio.fds[i];
  const guest::ContainerOrder order{guest::kMagic};
  const int control = visitor.control.get();
  const int error = linux::send_with_descriptors(control, &order, sizeof order, given.data(), given.size());
  if (error != 0) return base::system_error("order the guest", id, error);
  base::Fd listener;
  if (config.isolated_network) {
    BELLJAR_ASSIGN(listener, handed_out(control, "take the guest's listener", deadline));
  }
  BELLJAR_ASSIGN(base::Fd scratch, handed_out(control, "take the guest's scratch", deadline));
  if (deadline.passed()) return base::refuse("start the container", id, "the time was up, refusing");
  jail::Guest::Parts parts;
  BELLJAR_ASSIGN(parts.keeper, jail::Keeper::start([] {}));
  parts.init = std::move(visitor.pidfd);
  parts.pid = visitor.pid;
  parts.control = std::move(visitor.control);
  parts.listener = std::move(listener);
  parts.scratch = std::move(scratch);
  parts.foreign = true;
  return jail::Guest(std::move(parts));
}

}  // namespace belljar::tiers::docker
