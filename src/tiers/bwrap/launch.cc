#include "tiers/bwrap/launch.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/io.h"
#include "base/pair.h"
#include "base/path.h"
#include "base/text.h"
#include "linux/bubblewrap.h"
#include "tiers/bwrap/child.h"

namespace belljar::tiers::bwrap {
namespace {

constexpr auto kPidfd = static_cast<idtype_t>(3);  // P_PIDFD, which older libcs do not name
constexpr auto kSetUpTime = std::chrono::seconds(20);
constexpr size_t kMostComplaint = 4096;

// Where root's child gathers the binds. Bubblewrap itself needs this folder and covers it (bwrap.c, base_path).
constexpr const char* kStage = "/tmp";

// The path itself, through no link on the way. False when it is not there.
base::Result<bool> look_at(const std::string& path, struct stat& found) {
  auto opened = base::open_resolved(AT_FDCWD, path, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (!opened) {
    if (opened.error().code == ENOENT || opened.error().code == EACCES) return false;
    return std::unexpected(std::move(opened).error());
  }
  if (::fstat(opened->get(), &found) != 0) return base::system_error("look at", path, errno);
  return true;
}

base::Result<TargetFacts> look_at_targets(const plan::Plan& plan) {
  TargetFacts out;
  if (::geteuid() == 0) out.stage = kStage;
  for (const std::string& path : covered_paths(plan)) {
    struct stat found{};
    BELLJAR_ASSIGN(const bool there, look_at(path, found));
    if (!there) continue;
    if (S_ISLNK(found.st_mode)) return base::refuse("cover", path, "it is a symbolic link, refusing");
    out.there[path] = S_ISDIR(found.st_mode);
  }
  return out;
}

// What must lie at each bind: bubblewrap opens by path, and follows links.
base::Status note_identities(const Arguments& arguments, std::vector<guest::ExpectedMount>& mounts) {
  for (const Source& source : arguments.sources) {
    struct stat found{};
    BELLJAR_ASSIGN(const bool there, look_at(source.path, found));
    if (!there) {
      if (source.optional) continue;
      return base::system_error("bind", source.path, ENOENT);
    }
    if (S_ISLNK(found.st_mode)) return base::refuse("bind", source.path, "it is a symbolic link, refusing");
    const auto expected = std::ranges::find(mounts, source.target, &guest::ExpectedMount::path);
    if (expected == mounts.end()) continue;
    expected->lies_on = found.st_dev;
    expected->inode = found.st_ino;
  }
  return {};
}

base::Result<base::Fd> file_of(const std::string& content) {
  base::Fd file(::memfd_create("belljar", MFD_CLOEXEC));
  if (!file) return base::system_error("make a file in memory", "", errno);
  if (!base::write_all(file.get(), content) || ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return base::system_error("write a file in memory", "", errno);
  }
  return file;
}

// The number after `"child-pid":` in what --info-fd tells (bwrap(1)).
pid_t child_pid_in(std::string_view info) {
  constexpr std::string_view kKey = "\"child-pid\":";
  const size_t at = info.find(kKey);
  if (at == std::string_view::npos) return -1;
  std::string_view rest = info.substr(at + kKey.size());
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  uint64_t pid = 0;
  return base::parse_uint(rest.substr(0, rest.find_first_not_of("0123456789")), pid) ? static_cast<pid_t>(pid) : -1;
}

std::string field_of(std::string_view status, std::string_view name) {
  for (const std::string_view line : base::split(status, '\n')) {
    if (line.starts_with(name)) return std::string(line.substr(name.size()));
  }
  return {};
}

// Everything that a launch holds until there is a Guest.
class Start {
 public:
  Start(Prepared& prepared, const jail::Stdio& stdio) : prepared_(prepared), stdio_(stdio) {}
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;
  // What there is of a guest that did not come about is ended and collected.
  ~Start() { const jail::Guest rest(std::move(parts_)); }

  base::Result<jail::Guest> run(const std::function<base::Status()>& meanwhile, const linux::Cgroup* group);

 private:
  base::Status open_ends();
  base::Status gather_descriptors();
  base::Status fork_child(const linux::Cgroup* group);
  base::Status find_init();
  base::Status check_identity();
  base::Status send_config(const jail::Program& program);
  base::Status take_over(jail::Guest::Parts& parts);
  // The error of a bubblewrap that has ended, or that did not come far enough in time.
  base::Error failure(const char* operation);

  Prepared& prepared_;
  const jail::Stdio& stdio_;
  jail::UserNamespaces users_;
  base::Fd null_, program_;
  base::Pipe go_, failed_, info_, complaint_, life_;
  base::Fd control_, their_control_, config_, their_config_;
  std::vector<base::Fd> given_;
  std::vector<int> numbers_;
  std::vector<char*> words_;
  std::vector<std::string> names_;
  std::vector<Gathered> gathered_;
  Child child_;
  jail::Guest::Parts parts_;
  pid_t watcher_ = -1;
};

base::Status Start::open_ends() {
  for (base::Pipe* pipe : {&go_, &failed_, &info_, &complaint_, &life_}) BELLJAR_TRY(pipe->open());
  BELLJAR_TRY(base::make_pair(SOCK_SEQPACKET, control_, their_control_));
  BELLJAR_TRY(base::make_pair(SOCK_STREAM, config_, their_config_));
  null_.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_) return base::system_error("open", "/dev/null", errno);
  BELLJAR_ASSIGN(program_, base::open_resolved(AT_FDCWD, prepared_.guest_path, O_PATH, RESOLVE_NO_SYMLINKS));
  struct stat found{};
  if (::fstat(program_.get(), &found) != 0) return base::system_error("look at", prepared_.guest_path, errno);
  return jail::check_guest_program(prepared_.guest_path, found);
}

// In the order of Inherited, each above all numbers of bubblewrap's own.
base::Status Start::gather_descriptors() {
  std::vector<int> wanted{null_.get(), null_.get(), complaint_.in.get(), their_control_.get(), their_config_.get()};
  for (const int fd : stdio_.fds) wanted.push_back(fd < 0 ? null_.get() : fd);
  wanted.push_back(program_.get());
  wanted.push_back(info_.in.get());
  std::vector<base::Fd> files;
  for (const Text& text : prepared_.arguments.texts) {
    BELLJAR_ASSIGN(base::Fd file, file_of(text.content));
    wanted.push_back(file.get());
    files.push_back(std::move(file));
  }
  const int above = static_cast<int>(wanted.size());
  const auto lift = [&](int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, above); };
  for (const int fd : wanted) {
    given_.emplace_back(lift(fd));
    if (!given_.back()) return base::system_error("move a descriptor", "", errno);
    numbers_.push_back(given_.back().get());
  }
  base::Fd failed(lift(failed_.in.get()));
  if (!failed) return base::system_error("move a descriptor", "", errno);
  failed_.in = std::move(failed);
  return {};
}

base::Status Start::fork_child(const linux::Cgroup* group) {
  Arguments& arguments = prepared_.arguments;
  for (std::string& word : arguments.words) words_.push_back(word.data());
  words_.push_back(nullptr);
  names_.reserve(arguments.sources.size());
  for (const Source& source : arguments.sources) {
    names_.push_back(std::to_string(gathered_.size()));
    gathered_.push_back({source.path.c_str(), names_.back().c_str(), source.writable,
                         source.idmap && prepared_.program.identity.idmap, source.optional});
  }
  const plan::Identity& who = prepared_.program.identity;
  child_ = {.program = words_.front(),
            .words = words_.data(),
            .descriptors = numbers_,
            .go = go_.out.get(),
            .failed = failed_.in.get(),
            .life = life_.out.get(),
            .go_end = go_.in.get(),
            .life_end = life_.in.get(),
            .privileged = prepared_.program.privileged,
            .gathered = gathered_,
            .stage = kStage,
            .user_namespace = users_.guest.fd(),
            .id_map = users_.id_map.valid() ? users_.id_map.fd() : users_.guest.fd(),
            .uid = who.guest_uid,
            .gid = who.guest_gid};
  int error = 0;
  BELLJAR_ASSIGN(parts_.keeper, jail::Keeper::start([&] {
                   watcher_ = ::fork();
                   if (watcher_ == 0) ::_exit(watch_over_bubblewrap(child_));
                   if (watcher_ < 0) error = errno;
                 }));
  BELLJAR_TRY(parts_.keeper->wait());
  if (error != 0) return base::system_error("start a process", "", error);
  parts_.monitor.reset(static_cast<int>(::syscall(SYS_pidfd_open, watcher_, 0)));
  if (!parts_.monitor) return base::system_error("pidfd_open", "", errno);
  if (group != nullptr) BELLJAR_TRY(group->enter(watcher_));
  given_.clear();
  their_control_.reset();
  their_config_.reset();
  failed_.in.reset();
  info_.in.reset();
  complaint_.in.reset();
  life_.out.reset();
  parts_.life = std::move(life_.in);
  go_.out.reset();
  const char go = 1;
  if (::write(go_.in.get(), &go, 1) != 1) return base::system_error("start bubblewrap", "", errno);
  Failure failure;
  if (!base::read_exact(failed_.out.get(), &failure, sizeof failure)) return {};
  return base::system_error(failure.operation, failure.subject, failure.code, "see 'belljar doctor'");
}

base::Error Start::failure(const char* operation) {
  parts_.life.reset();  // and with it all that there is
  ::fcntl(complaint_.out.get(), F_SETFL, O_NONBLOCK);
  siginfo_t info{};
  while (::waitid(kPidfd, static_cast<id_t>(parts_.monitor.get()), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  std::array<char, kMostComplaint> bytes{};
  const ssize_t size = ::read(complaint_.out.get(), bytes.data(), bytes.size());
  std::string_view text(bytes.data(), size < 0 ? 0 : static_cast<size_t>(size));
  text = text.substr(0, text.find('\n'));
  base::Error error;
  error.operation = operation;
  error.subject = words_.front();
  error.reason = (text.empty() ? std::string("it ended without a word") : base::escape(text)) + ", refusing";
  error.hint = linux::bubblewrap_remedy(text) + ", or use mode = \"jail\"";
  return error;
}

// The child of bubblewrap's that becomes init: bubblewrap is the watcher's child, and has no other.
base::Status Start::find_init() {
  const base::Deadline deadline = base::Deadline::after(kSetUpTime);
  std::string info;
  for (;;) {
    pollfd wait{info_.out.get(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, deadline.poll_timeout());
    if (ready < 0 && errno == EINTR) continue;
    std::array<char, 512> bytes{};
    const ssize_t size = ready > 0 ? ::read(info_.out.get(), bytes.data(), bytes.size()) : 0;
    if (size > 0) info.append(bytes.data(), static_cast<size_t>(size));
    if (size <= 0 || info.contains('}') || info.size() > kMostComplaint) break;
  }
  parts_.pid = child_pid_in(info);
  if (parts_.pid <= 0) return std::unexpected(failure("start bubblewrap"));
  parts_.init.reset(static_cast<int>(::syscall(SYS_pidfd_open, parts_.pid, 0)));
  const auto parent_of = [](const std::string& pid) {
    return field_of(base::read_file("/proc/" + pid + "/status").value_or(""), "PPid:\t");
  };
  const std::string bubblewrap = parent_of(std::to_string(parts_.pid));
  const bool ours = !bubblewrap.empty() && parent_of(bubblewrap) == std::to_string(watcher_);
  pollfd alive{parts_.init.get(), POLLIN, 0};
  // A pid is not given to another process while its process lives: what is read in between was of the one that the
  // descriptor stands for.
  if (!parts_.init || !ours || ::poll(&alive, 1, 0) != 0) {
    parts_.init.reset();
    return std::unexpected(failure("start bubblewrap"));
  }
  return {};
}

// What the ids of init amount to on the host. Inside they are those of a map of a map.
base::Status Start::check_identity() {
  const plan::Identity& who = prepared_.program.identity;
  const auto status = base::read_file("/proc/" + std::to_string(parts_.pid) + "/status");
  const auto all = [](unsigned id) {
    const std::string text = std::to_string(id);
    return text + "\t" + text + "\t" + text + "\t" + text;
  };
  if (status && who.host_uid != 0 && who.host_gid != 0 && field_of(*status, "Uid:\t") == all(who.host_uid) &&
      field_of(*status, "Gid:\t") == all(who.host_gid)) {
    return {};
  }
  return base::refuse("start bubblewrap", words_.front(), "the guest is not the user of the plan, refusing");
}

base::Status Start::send_config(const jail::Program& program) {
  guest::Config config = prepared_.config;
  config.terminal = stdio_.fds[0] < 0;
  config.terminal_stderr = stdio_.fds[2] < 0;
  if (config.host_namespaces.empty()) {
    BELLJAR_ASSIGN(config.host_namespaces, jail::own_namespaces(program.protections.namespaces));
  }
  const std::string encoded = guest::encode(config);
  std::string_view rest = encoded;
  while (!rest.empty()) {
    const ssize_t sent = ::send(config_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return std::unexpected(failure("set up the guest"));
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  config_.reset();
  return {};
}

// What init hands out, in the order of Init::take_over(). Until then nothing of the agent's runs.
base::Status Start::take_over(jail::Guest::Parts& parts) {
  const base::Deadline deadline = base::Deadline::after(kSetUpTime);
  const auto take = [&](base::Fd& out) -> base::Status {
    pollfd wait{control_.get(), POLLIN, 0};
    while (::poll(&wait, 1, deadline.poll_timeout()) < 0 && errno == EINTR) {
    }
    guest::GuestMessage message;
    if (::recv(control_.get(), &message, sizeof message, MSG_PEEK | MSG_DONTWAIT) == sizeof message &&
        message.magic == guest::kMagic && message.event == guest::GuestEvent::kSetupFailed) {
      return base::system_error("set up the guest", "", message.value, "see 'belljar doctor'");
    }
    auto taken = jail::take_descriptor(control_.get(), "set up the guest", MSG_DONTWAIT);
    if (!taken) return std::unexpected(failure("set up the guest"));
    out = std::move(*taken);
    return {};
  };
  if (prepared_.config.isolated_network) BELLJAR_TRY(take(parts.listener));
  for (size_t i = 0; i < prepared_.config.scratch.size(); ++i) {
    base::Fd scratch;
    BELLJAR_TRY(take(scratch));
    if (i == 0) {
      parts.scratch = std::move(scratch);
    } else {
      parts.more_scratch.push_back(std::move(scratch));
    }
  }
  return {};
}

base::Result<jail::Guest> Start::run(const std::function<base::Status()>& meanwhile, const linux::Cgroup* group) {
  BELLJAR_TRY(open_ends());
  BELLJAR_ASSIGN(users_, jail::make_user_namespaces(prepared_.program));
  BELLJAR_TRY(gather_descriptors());
  BELLJAR_TRY(fork_child(group));
  if (meanwhile) BELLJAR_TRY(meanwhile());
  BELLJAR_TRY(find_init());
  BELLJAR_TRY(send_config(prepared_.program));
  BELLJAR_TRY(take_over(parts_));
  BELLJAR_TRY(check_identity());
  parts_.control = std::move(control_);
  return jail::Guest(std::move(parts_));
}

}  // namespace

base::Result<Prepared> prepare(const plan::Plan& plan, const std::string& guest_path, const jail::Copies& copies) {
  BELLJAR_ASSIGN(jail::Prepared made, jail::prepare(plan, guest_path, copies));
  Prepared out;
  out.program = std::move(made.program);
  out.config = std::move(made.config);
  out.guest_path = std::move(made.guest_path);
  BELLJAR_ASSIGN(const TargetFacts facts, look_at_targets(plan));
  BELLJAR_ASSIGN(out.arguments, arguments_of(plan, facts, copies, out.config.landlock_abi != 0));
  guest::Config& config = out.config;
  config.made_by_other = true;
  config.mounts = out.arguments.mounts;
  BELLJAR_TRY(note_identities(out.arguments, config.mounts));
  config.scratch_bytes = out.arguments.scratch_share;
  config.scratch_files = 0;
  if (config.landlock_abi != 0) config.canary = kCanary;
  for (const std::string& folder : out.arguments.scratch) config.scratch.push_back(folder);
  return out;
}

base::Result<jail::Guest> start(Prepared& prepared, const jail::Stdio& stdio,
                                const std::function<base::Status()>& meanwhile, const linux::Cgroup* group) {
  return Start(prepared, stdio).run(meanwhile, group);
}

}  // namespace belljar::tiers::bwrap
