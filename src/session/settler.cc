#include "session/settler.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/io.h"
#include "base/pack.h"
#include "base/pair.h"
#include "base/path.h"
#include "base/reap.h"
#include "linux/descriptor_passing.h"
#include "net/name_servers.h"
#include "session/launcher_seal.h"
#include "session/live_rules.h"
#include "session/marker.h"
#include "session/state_folder.h"

namespace belljar::session {
namespace {

constexpr uint32_t kMagic = 0x626a7365;
constexpr size_t kChunk = 32768;
constexpr auto kReadyTime = std::chrono::seconds(20);
constexpr auto kGraceTime = std::chrono::seconds(10);
constexpr int kGuestEndMilliseconds = 20'000;
// How often the host's resolv.conf is looked at. Not by inotify(7), whose end would delay the process's.
constexpr int kLookMilliseconds = 2'000;

// One message each, of a fixed size.
enum class Word : uint32_t {
  kReady,   // settler: the marker stands; with its descriptor
  kFailed,  // settler: it does not, for `text`
  kGuard,   // launcher: with the guest's pidfd, and the scratch or the pidfd again
  kBegin,   // launcher: the agent starts
  kSettle,  // launcher
};
struct Message {
  uint32_t magic = kMagic;
  Word word = Word::kSettle;
  int32_t guest = 0;
  uint32_t has_scratch = 0;
  guest::ProbeRecord evidence;
  std::array<char, 512> text{};
};

// The forked process.
class Process {
 public:
  // With `name_servers` it tells there of every change of `resolv_conf`.
  Process(const Errand& errand, base::Fd socket, base::Fd name_servers, net::ResolvConf resolv_conf)
      : errand_(errand),
        socket_(std::move(socket)),
        name_servers_(std::move(name_servers)),
        resolv_conf_(std::move(resolv_conf)),
        begun_(base::boot_now()) {}
  int run();

 private:
  void detach() const;
  void shut_door() const;
  void forget() const;
  base::Status write_marker();
  base::Status tell_marker();
  void tell_failure(const base::Error& error) const;
  bool wait_for_guard();
  bool wait_for_begin();
  [[nodiscard]] bool wait_for_end();
  void wait_for_word();
  void tell_name_servers();
  [[nodiscard]] bool end_guest() const;
  // What is done by `always` in any case, or what is not.
  void work(bool always, workspace::Settled& out);
  [[nodiscard]] bool tell(const workspace::Settled& settled) const;
  void write_settlement(const workspace::Settled& settled) const;

  const Errand& errand_;
  base::Fd socket_;
  base::Fd name_servers_;
  net::ResolvConf resolv_conf_;
  std::chrono::nanoseconds begun_;
  StateFolder state_;
  base::Fd marker_;
  base::Fd guest_;
  base::Fd scratch_;
  guest::ProbeRecord evidence_;
  std::vector<workspace::Work> unfinished_;
};

// Other rules are of no use to a session whose guest has ended.
void Process::shut_door() const {
  for (const std::string_view suffix : {kDoor, kBell, kLaunchRecord}) {
    state_.remove(errand_.session + std::string(suffix));
  }
}

// The session is settled, but for what could not be released: that stays on record, for `belljar recover`.
void Process::forget() const {
  const std::string name = errand_.session + std::string(kPending);
  Marker left{errand_.session, errand_.started, errand_.plan, unfinished_, 0, 0};
  // Where that cannot be written the whole record stays.
  if (unfinished_.empty()) {
    state_.remove(name);
  } else {
    (void)state_.write_file(name, encode(left));
  }
}

// Away from the caller's terminal, signals and files. A copy of the launcher's end of the guest's socket, or of its own
// end of this one, would hide the launcher's death from those who wait for it.
void Process::detach() const {
  std::vector<int> kept{socket_.get()};
  if (name_servers_) kept.push_back(name_servers_.get());
  for (const workspace::Work& work : errand_.works) {
    kept.insert(kept.end(), work.descriptors.begin(), work.descriptors.end());
  }
  close_all_but(std::move(kept));
  for (int number = 0; number <= STDERR_FILENO; ++number) {
    (void)::open("/dev/null", O_RDWR);  // NOLINT(android-cloexec-open): it stands for 0, 1 or 2
  }
  ::setsid();
  ::prctl(PR_SET_NAME, "belljar-settler");
  // What the launcher's terminal, its group or its shell send is not for this process. It ends by its own clock.
  sigset_t all_but_alarm;
  ::sigfillset(&all_but_alarm);
  ::sigdelset(&all_but_alarm, SIGALRM);
  ::signal(SIGALRM, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &all_but_alarm, nullptr);
  ::umask(077);
  (void)!::chdir("/");
}

base::Status Process::write_marker() {
  BELLJAR_ASSIGN(state_, StateFolder::open(errand_.state_folder));
  for (const plan::Mount& mount : errand_.plan.mounts) {
    if (mount.kind != plan::MountKind::kBind || !mount.writable) continue;
    // One that the guest may write but for what is hidden in it, as with files.allow_home.
    const auto hides = [&](const plan::Mount& mask) {
      return mask.kind == plan::MountKind::kMask && base::is_within(state_.path(), mask.target) &&
             base::is_within(mask.target, mount.target);
    };
    if (base::is_within(state_.path(), mount.source) && std::ranges::none_of(errand_.plan.mounts, hides)) {
      return base::refuse("use the state folder", state_.path(), "the guest may write '" + mount.source + "', refusing",
                          "set XDG_STATE_HOME to a folder outside");
    }
  }
  Marker marker{errand_.session, errand_.started, errand_.plan, errand_.works, 0, 0};
  BELLJAR_ASSIGN(marker_, state_.write_locked_file(errand_.session + std::string(kPending), encode(marker)));
  return tell_marker();
}

// The launcher's lock belongs to a description of its own that cannot write.
base::Status Process::tell_marker() {
  BELLJAR_ASSIGN(const base::Fd copy, state_.open_file(errand_.session + std::string(kPending), O_RDONLY));
  if (::flock(copy.get(), LOCK_SH | LOCK_NB) != 0) return base::system_error("lock the marker", "", errno);
  Message ready;
  ready.word = Word::kReady;
  const int error = linux::send_with_descriptor(socket_.get(), &ready, sizeof ready, copy.get());
  if (error != 0) return base::system_error("tell the launcher", "", error);
  return {};
}

void Process::tell_failure(const base::Error& error) const {
  Message failed;
  failed.word = Word::kFailed;
  const std::string text = error.message();
  std::memcpy(failed.text.data(), text.data(), std::min(text.size(), failed.text.size() - 1));
  (void)linux::send_with_descriptor(socket_.get(), &failed, sizeof failed, -1);
}

// False when the launcher ended, or gave up, before there was a guest.
bool Process::wait_for_guard() {
  Message message;
  std::array<int, 2> given{-1, -1};
  if (linux::receive_with_descriptors(socket_.get(), &message, sizeof message, given.data(), given.size()) != 0) {
    return false;
  }
  guest_.reset(given[0]);
  scratch_.reset(given[1]);
  if (message.magic != kMagic || message.word != Word::kGuard) return false;
  if (message.has_scratch == 0) scratch_.reset();
  // The launcher lets the agent go only after the answer: so a marker without a guest means that there was no agent.
  if (note_guest(marker_.get(), message.guest) != 0) return false;
  Message ready;
  ready.word = Word::kReady;
  return linux::send_with_descriptor(socket_.get(), &ready, sizeof ready, -1) == 0;
}

// False when the launcher ended, or gave up, before it let the agent start.
bool Process::wait_for_begin() {
  Message message;
  base::Fd none;
  if (linux::receive_with_descriptor(socket_.get(), &message, sizeof message, none) != 0) return false;
  evidence_ = message.evidence;
  return message.magic == kMagic && message.word == Word::kBegin;
}

// The launcher has sealed itself and can read no file. Nothing waits here for it to listen.
void Process::tell_name_servers() {
  const auto servers = resolv_conf_.changed();
  if (!servers) return;
  (void)::send(name_servers_.get(), servers->data(), servers->size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Of the guest, or of the launcher's patience with it. True when the launcher has said so, or is gone.
bool Process::wait_for_end() {
  std::array<pollfd, 2> wait{{{socket_.get(), POLLIN, 0}, {guest_.get(), POLLIN, 0}}};
  for (;;) {
    const int ready = ::poll(wait.data(), wait.size(), name_servers_ ? kLookMilliseconds : -1);
    if (ready == 0) tell_name_servers();
    if (ready > 0) break;
  }
  if (wait[0].revents == 0) return false;
  wait_for_word();
  return true;
}

// By the launcher's word or its end, which are the same from here on.
void Process::wait_for_word() {
  Message message;
  base::Fd none;
  (void)linux::receive_with_descriptor(socket_.get(), &message, sizeof message, none);
}

bool Process::end_guest() const {
  ::syscall(SYS_pidfd_send_signal, guest_.get(), SIGKILL, nullptr, 0);
  // Readable when init has ended, and the kernel ends init last (pid_namespaces(7)).
  pollfd wait{guest_.get(), POLLIN, 0};
  return ::poll(&wait, 1, kGuestEndMilliseconds) == 1;
}

void Process::work(bool always, workspace::Settled& out) {
  for (const workspace::Work& work : errand_.works) {
    if (!work.run || work.always != always) continue;
    workspace::take_result(work, work.run(scratch_.get()), out, unfinished_);
  }
}

// The length first, so that the launcher need not wait for the end of the process to know that this is all.
bool Process::tell(const workspace::Settled& settled) const {
  std::string bytes;
  base::pack_text(bytes, encode(settled));
  for (size_t at = 0; at < bytes.size(); at += kChunk) {
    const size_t size = std::min(kChunk, bytes.size() - at);
    if (linux::send_with_descriptor(socket_.get(), bytes.data() + at, size, -1) != 0) return false;
  }
  return true;
}

void Process::write_settlement(const workspace::Settled& settled) const {
  Settlement settlement;
  settlement.session = errand_.session;
  settlement.started = errand_.started;
  settlement.reason = EndReason::kLost;
  settlement.error = "belljar itself was ended before the session was";
  settlement.duration = base::boot_now() - begun_;
  settlement.evidence = evidence_;
  settlement.after = settled;
  (void)state_.write_file(errand_.session + ".json", settlement_json(settlement, errand_.plan));
}

int Process::run() {
  detach();
  workspace::Settled settled;
  if (const auto status = write_marker(); !status) {
    tell_failure(status.error());
    work(true, settled);
    if (state_) {
      shut_door();
      forget();
    }
    return 1;
  }
  if (!wait_for_guard() || !wait_for_begin()) {
    ::alarm(static_cast<unsigned>(Settler::kMostTime.count()));
    work(true, settled);
    shut_door();
    forget();
    return 0;
  }
  const bool told = wait_for_end();
  // SIGALRM ends the process; the marker then stays for whoever recovers it.
  ::alarm(static_cast<unsigned>(Settler::kMostTime.count()));
  if (!end_guest()) return 1;
  work(false, settled);
  shut_door();
  if (!told) {
    // The launcher may be at the guest's last output, for as long as its reader takes, and at the group's counters.
    ::alarm(0);
    wait_for_word();
    ::alarm(static_cast<unsigned>(Settler::kMostTime.count()));
  }
  work(true, settled);
  if (!tell(settled)) write_settlement(settled);
  forget();
  return 0;
}

// What tell() sends.
bool is_whole(std::string_view bytes) {
  base::Unpacker in(bytes);
  (void)in.text(workspace::kMostEncoded);
  return in.at_end();
}

}  // namespace

base::Result<Settler> Settler::start(const Errand& errand) {
  base::Fd ours;
  base::Fd theirs;
  BELLJAR_TRY(base::make_pair(SOCK_SEQPACKET, ours, theirs));
  base::Fd news;
  base::Fd teller;
  if (errand.follow_name_servers) BELLJAR_TRY(base::make_pair(SOCK_SEQPACKET, news, teller));
  // As it is before the launcher's resolver reads it.
  net::ResolvConf resolv_conf;
  const pid_t pid = ::fork();
  if (pid < 0) return base::system_error("start the settler", "", errno);
  // The launcher's objects are left as they are: their ends are not this process's to make.
  if (pid == 0) ::_exit(Process(errand, std::move(theirs), std::move(teller), std::move(resolv_conf)).run());
  return Settler(std::move(ours), std::move(news), pid);
}

Settler::Settler(Settler&& other) noexcept
    : socket_(std::move(other.socket_)),
      name_servers_(std::move(other.name_servers_)),
      marker_(std::move(other.marker_)),
      guards_(std::exchange(other.guards_, false)),
      pid_(std::exchange(other.pid_, -1)) {}

Settler& Settler::operator=(Settler&& other) noexcept {
  if (this == &other) return *this;
  hang_up();
  socket_ = std::move(other.socket_);
  name_servers_ = std::move(other.name_servers_);
  marker_ = std::move(other.marker_);
  guards_ = std::exchange(other.guards_, false);
  pid_ = std::exchange(other.pid_, -1);
  return *this;
}

void Settler::hang_up() {
  socket_.reset();
  marker_.reset();
  const pid_t pid = std::exchange(pid_, -1);
  (void)base::reap(pid);
}

base::Result<base::Fd> Settler::hear() const {
  constexpr std::string_view kOperation = "prepare the settlement";
  const auto deadline = base::Deadline::after(kReadyTime);
  pollfd wait{socket_.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&wait, 1, deadline.poll_timeout());
  } while (ready < 0 && errno == EINTR);
  Message message;
  base::Fd file;
  const int error =
      ready == 1 ? linux::receive_with_descriptor(socket_.get(), &message, sizeof message, file) : ETIMEDOUT;
  if (error != 0 || message.magic != kMagic) {
    return base::refuse(kOperation, "", "the settler does not answer, refusing");
  }
  if (message.word == Word::kReady) return file;
  message.text.back() = '\0';
  return base::refuse(kOperation, "", message.text.data());
}

base::Status Settler::recorded() {
  if (marker_) return {};
  BELLJAR_ASSIGN(marker_, hear());
  return {};
}

base::Status Settler::prepare() {
  BELLJAR_TRY(recorded());
  if (guards_) BELLJAR_TRY(hear());
  return {};
}

base::Status Settler::guard(int pidfd, pid_t guest, int scratch) {
  Message message;
  message.word = Word::kGuard;
  message.guest = guest;
  message.has_scratch = scratch >= 0 ? 1 : 0;
  const std::array<int, 2> given{pidfd, scratch >= 0 ? scratch : pidfd};
  const int error = linux::send_with_descriptors(socket_.get(), &message, sizeof message, given.data(), given.size());
  // A settler that has ended already has left word of why, for prepare() to hear.
  if (error != 0 && error != EPIPE) return base::system_error("tell the settler of the guest", "", error);
  guards_ = true;
  return {};
}

base::Status Settler::begin(const guest::ProbeRecord& evidence) {
  Message message;
  message.word = Word::kBegin;
  message.evidence = evidence;
  const int error = linux::send_with_descriptor(socket_.get(), &message, sizeof message, -1);
  if (error != 0) return base::system_error("tell the settler of the agent", "", error);
  return {};
}

base::Result<workspace::Settled> Settler::settle() {
  constexpr std::string_view kOperation = "settle the session";
  constexpr std::string_view kHint = "run 'belljar recover'";
  const Message message;
  const int error = linux::send_with_descriptor(socket_.get(), &message, sizeof message, -1);
  if (error != 0) return base::system_error(kOperation, "", error, kHint);
  std::string bytes;
  std::array<char, kChunk> chunk;
  const auto deadline = base::Deadline::after(kMostTime + kGraceTime);
  while (!is_whole(bytes)) {
    pollfd wait{socket_.get(), POLLIN, 0};
    if (::poll(&wait, 1, deadline.poll_timeout()) == 0) {
      pid_ = -1;  // somebody has stopped it: waiting for its end would be for ever
      hang_up();
      return base::refuse(kOperation, "", "the settler does not answer", kHint);
    }
    const ssize_t n = ::recv(socket_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0 || bytes.size() > workspace::kMostEncoded) break;
    bytes.append(chunk.data(), static_cast<size_t>(n));
  }
  hang_up();
  if (!is_whole(bytes)) return base::refuse(kOperation, "", "the settler ended without a word", kHint);
  base::Unpacker in(bytes);
  return workspace::decode_settled(in.text(workspace::kMostEncoded));
}

}  // namespace belljar::session
