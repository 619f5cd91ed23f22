#include "session/recover.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/io.h"
#include "base/text.h"
#include "session/after.h"
#include "session/live_rules.h"
#include "session/marker.h"
#include "session/settlement.h"
#include "session/state_folder.h"
#include "workspace/protected.h"
#include "workspace/quarantine_store.h"

namespace belljar::session {
namespace {

constexpr int kGuestEndMilliseconds = 10'000;

base::Result<Marker> read_marker(int file, const std::string& name) {
  BELLJAR_ASSIGN(const std::string bytes, base::read_to_end(file, kMostMarker, name));
  return decode_marker(bytes);
}

// The guest ends with its launcher; this waits for that. False when it is still there.
bool guest_is_gone(const Marker& marker) {
  if (marker.guest_started == 0) return true;
  const base::Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, marker.guest, 0)));
  if (!pidfd) return errno == ESRCH;
  // Asked after the descriptor was opened: so it is of this very process.
  if (start_time_of(marker.guest) != marker.guest_started) return true;
  pollfd wait{pidfd.get(), POLLIN, 0};
  return ::poll(&wait, 1, kGuestEndMilliseconds) == 1;
}

// `unfinished` gets what is to be tried again: what could not be released.
workspace::Settled redo(const Marker& marker, std::span<const KnownWork> known,
                        const std::function<void(const std::string&)>& tell, std::vector<workspace::Work>& unfinished) {
  workspace::Settled out;
  for (const workspace::Work& work : marker.works) {
    if (marker.guest == 0 && !work.always) continue;
    const auto found = std::ranges::find(known, work.name, &KnownWork::name);
    if (found == known.end()) {
      out.add_unreleased(work.name + ": it can only be done by the session itself");
      continue;
    }
    if (marker.guest == 0 && found->due) {
      if (!found->due(work.record)) {
        unfinished.push_back(work);
        continue;
      }
      tell(marker.plan.work_folder);
    }
    workspace::Work tried = work;
    // What only some launches come back to would hold up each of them for what cannot be done.
    if (found->due) tried.always = false;
    workspace::take_result(tried, found->redo(work.record), out, unfinished);
  }
  return out;
}

// What ends that were killed had put away before this one.
void add_moved_before(const std::string& quarantine, const std::string& session, workspace::Settled& settled) {
  const auto store = workspace::QuarantineStore::open(quarantine);
  if (!store) return;
  const auto items = store->list();
  if (!items) return;
  std::set<std::string> told;
  for (const workspace::Quarantined& one : settled.quarantined()) told.insert(one.moved_to);
  for (const workspace::QuarantineItem& item : *items) {
    if (item.id.starts_with(session + "/") && !told.contains(item.at)) settled.add({item.origin, item.at, {}});
  }
}

class Recoverer {
 public:
  Recoverer(const StateFolder& state, std::span<const KnownWork> known,
            const std::function<void(const std::string&)>& tell)
      : state_(state), known_(known), tell_(tell) {}
  base::Status one(const std::string& name);
  Recovery out;

 private:
  [[nodiscard]] bool is_recovered_for_us(int file) const;

  const StateFolder& state_;
  std::span<const KnownWork> known_;
  const std::function<void(const std::string&)>& tell_;
};

// Another process is at it, and what it does has to be done before the caller goes on.
bool Recoverer::is_recovered_for_us(int file) const {
  // Those of a session that runs are shared.
  if (::flock(file, LOCK_SH | LOCK_NB) == 0) {
    ::flock(file, LOCK_UN);
    return false;
  }
  const auto marker = read_marker(file, "the marker");
  (void)::lseek(file, 0, SEEK_SET);
  return marker && std::ranges::any_of(marker->works, [&](const workspace::Work& work) {
           const auto found = std::ranges::find(known_, work.name, &KnownWork::name);
           return found != known_.end() && found->due && found->due(work.record);
         });
}

base::Status Recoverer::one(const std::string& name) {
  const std::string file_name = name + std::string(kPending);
  auto file = state_.open_file(file_name, O_RDONLY);
  if (!file) {
    if (file.error().code == ENOENT) return {};
    return std::unexpected(file.error());
  }
  if (::flock(file->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return base::system_error("lock the marker", file_name, errno);
    if (!is_recovered_for_us(file->get())) return {};
    // What is waited for has no guest.
    if (::flock(file->get(), LOCK_EX) != 0) return base::system_error("lock the marker", file_name, errno);
  }
  // Settled between the two calls.
  struct stat found{};
  if (::fstat(file->get(), &found) != 0 || found.st_nlink == 0) return {};
  BELLJAR_ASSIGN(const Marker marker, read_marker(file->get(), file_name));
  std::vector<workspace::Work> unfinished;
  Recovered recovered{marker.session, marker.plan.work_folder, {}, {}};
  if (marker.guest != 0) {
    if (!guest_is_gone(marker)) {
      return base::refuse("recover the session", marker.session, "its guest is still there", "try again");
    }
    Settlement settlement;
    settlement.session = marker.session;
    settlement.started = marker.started;
    settlement.reason = EndReason::kLost;
    settlement.error = "belljar and its settler were ended before the session was; recovered later";
    settlement.after = redo(marker, known_, tell_, unfinished);
    add_moved_before(quarantine_path(state_.path()), marker.session, settlement.after);
    recovered.settled = settlement.after;
    BELLJAR_TRY(state_.write_file(name + ".json", settlement_json(settlement, marker.plan)));
    recovered.settlement = state_.path() + "/" + name + ".json";
    out.sessions.push_back(std::move(recovered));
  } else {
    const workspace::Settled settled = redo(marker, known_, tell_, unfinished);
    if (!settled.unreleased().empty()) {
      out.errors.push_back(base::refuse("recover the session", marker.session, base::join(settled.unreleased(), "; "),
                                        "try again: belljar recover")
                               .error());
    }
    if (!settled.quarantined().empty()) {
      recovered.settled = settled;
      out.sessions.push_back(std::move(recovered));
    }
  }
  // By which a session that runs is told of other rules.
  for (const std::string_view suffix : {kDoor, kBell, kLaunchRecord}) state_.remove(name + std::string(suffix));
  if (unfinished.empty()) {
    state_.remove(file_name);
    return {};
  }
  return state_.write_file(file_name, encode(Marker{marker.session, marker.started, marker.plan, unfinished, 0, 0}));
}

}  // namespace

base::Result<Recovery> recover(const std::string& state_folder, std::span<const KnownWork> known,
                               const std::function<void(const std::string& work_folder)>& tell) {
  if (::access(state_folder.c_str(), F_OK) != 0 && errno == ENOENT) return Recovery{};
  BELLJAR_ASSIGN(const StateFolder state, StateFolder::open(state_folder));
  BELLJAR_ASSIGN(const std::vector<std::string> names, state.names(kPending));
  Recoverer recoverer(state, known, tell);
  for (const std::string& name : names) {
    if (auto status = recoverer.one(name); !status) recoverer.out.errors.push_back(std::move(status).error());
  }
  return std::move(recoverer.out);
}

void remove_remains(const std::string& state_folder, std::chrono::seconds age) {
  if (::access(state_folder.c_str(), F_OK) != 0) return;
  const auto state = StateFolder::open(state_folder);
  if (!state || !live_sessions(*state)) return;
  const auto remove = [&](std::string_view suffix, auto&& is_left) {
    for (const std::string& name : state->names(suffix).value_or(std::vector<std::string>())) {
      if (is_left(name)) state->remove_older(name + std::string(suffix), age);
    }
  };
  remove(StateFolder::kUnnamed, [](const std::string&) { return true; });
  for (const std::string_view suffix : {kBell, kLaunchRecord}) {
    remove(suffix, [&](const std::string& session) {
      return ::faccessat(state->fd(), (session + std::string(kDoor)).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0;
    });
  }
}

std::vector<LiveTree> live_trees(const std::string& state_folder) {
  std::vector<LiveTree> out;
  if (::access(state_folder.c_str(), F_OK) != 0) return out;
  const auto state = StateFolder::open(state_folder);
  const auto names = state ? state->names(kPending) : std::unexpected(state.error());
  if (!names) return {{"/", 0}};
  for (const std::string& name : *names) {
    const auto file = state->open_file(name + std::string(kPending), O_RDONLY);
    if (!file && file.error().code == ENOENT) continue;
    workspace::FileLook found;
    if (file && ::flock(file->get(), LOCK_EX | LOCK_NB) == 0) continue;
    const auto marker = file ? read_marker(file->get(), name) : std::unexpected(file.error());
    if (!marker || !workspace::look_at(file->get(), "", found)) return {{"/", 0}};
    // Changed last before the agent was let go.
    for (std::string& root : guarded_trees(marker->works)) out.push_back({std::move(root), found.changed});
  }
  return out;
}

}  // namespace belljar::session
