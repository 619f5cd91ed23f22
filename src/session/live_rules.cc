#include "session/live_rules.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/io.h"
#include "base/path.h"

namespace belljar::session {
namespace {

constexpr std::string_view kChanging = "change the rules of the session";
constexpr auto kAnswerTime = std::chrono::seconds(10);
constexpr size_t kMostAnswer = 8192;

std::string path_of(const base::Fd& file) {
  return "/proc/self/fd/" + std::to_string(file.get());
}

base::Result<base::Fd> watch(const base::Fd& file, uint32_t events) {
  base::Fd notices(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!notices) return base::system_error("watch for rules", "", errno, "see /proc/sys/fs/inotify");
  if (::inotify_add_watch(notices.get(), path_of(file).c_str(), events) < 0) {
    return base::system_error("watch for rules", "", errno, "see /proc/sys/fs/inotify");
  }
  return notices;
}

bool is_answer(std::string_view text) {
  return text.ends_with('\n') && (text.starts_with("taken") || text.starts_with("refused"));
}

}  // namespace

base::Result<RuleDoor> make_rule_door(const std::string& state_folder, const std::string& session,
                                      std::string_view launch_record, const plan::Plan& plan) {
  BELLJAR_ASSIGN(const StateFolder state, StateFolder::open(state_folder));
  for (const plan::Mount& mount : plan.mounts) {
    // Reading is enough: whoever has a bell open takes its rings away.
    if (mount.kind != plan::MountKind::kBind) continue;
    if (base::is_within(state.path(), mount.source)) {
      return base::refuse("use the state folder", state.path(), "the guest sees '" + mount.source + "'",
                          "set XDG_STATE_HOME to a folder outside");
    }
  }
  BELLJAR_TRY(state.write_file(session + std::string(kLaunchRecord), launch_record));
  RuleDoor door;
  BELLJAR_ASSIGN(door.file, state.write_locked_file(session + std::string(kDoor), {}));
  BELLJAR_ASSIGN(door.bell, state.make_bell(session + std::string(kBell)));
  return door;
}

base::Result<std::vector<std::string>> live_sessions(const StateFolder& state) {
  BELLJAR_ASSIGN(const std::vector<std::string> names, state.names(kDoor));
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const auto file = state.open_file(name + std::string(kDoor), O_RDONLY);
    if (!file) continue;
    if (::flock(file->get(), LOCK_EX | LOCK_NB) != 0) {
      out.push_back(name);
      continue;
    }
    state.remove(name + std::string(kDoor));
    state.remove(name + std::string(kBell));
    state.remove(name + std::string(kLaunchRecord));
  }
  return out;
}

// The folder's own lock, which no launcher holds.
base::Status lock_rules(const StateFolder& state) {
  if (::flock(state.fd(), LOCK_EX) != 0) return base::system_error("lock the state folder", state.path(), errno);
  return {};
}

base::Result<std::string> send_rules(const StateFolder& state, const std::string& session,
                                     const egress::RuleUpdate& update) {
  const std::string name = session + std::string(kDoor);
  BELLJAR_ASSIGN(const base::Fd door, state.open_file(name, O_RDONLY));
  BELLJAR_TRY(lock_rules(state));
  BELLJAR_ASSIGN(const base::Fd notices, watch(door, IN_MODIFY));
  {
    BELLJAR_ASSIGN(const base::Fd writer, state.open_file(name, O_WRONLY));
    if (::ftruncate(writer.get(), 0) != 0 || !base::write_all(writer.get(), egress::encode(update))) {
      return base::system_error(kChanging, session, errno);
    }
  }
  BELLJAR_TRY(state.ring(session + std::string(kBell)));
  const auto deadline = base::Deadline::after(kAnswerTime);
  for (;;) {
    std::string text(kMostAnswer, '\0');
    const ssize_t n = ::pread(door.get(), text.data(), text.size(), 0);
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    if (is_answer(text)) {
      text.pop_back();
      if (text.starts_with("taken")) return text;
      return base::refuse(kChanging, session, text);
    }
    pollfd wait{notices.get(), POLLIN, 0};
    if (::poll(&wait, 1, deadline.poll_timeout()) == 0) {
      return base::refuse(kChanging, session, "its launcher does not answer", "is it stopped, or at its end?");
    }
    std::array<char, 4096> ignored;
    while (::read(notices.get(), ignored.data(), ignored.size()) > 0) {
    }
  }
}

}  // namespace belljar::session
