// The process that does what is to be done after the guest's end, whatever becomes of the launcher.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "plan/plan.h"
#include "session/settlement.h"
#include "workspace/settled.h"

namespace belljar::session {

// What the settler knows from the beginning.
struct Errand {
  std::string session;
  std::string started;       // UTC, RFC 3339
  std::string state_folder;  // where marker and, for a dead session, settlement go
  plan::Plan plan;
  std::vector<workspace::Work> works;
  bool follow_name_servers = false;  // tell the proxy when the host's change
};

// The launcher's end. The process is a fork of the launcher from before the launcher seals itself; it obeys three words
// of the launcher's (guard, begin, settle) and the hang-up of their socket, which also kill -9 causes. It leads a
// session of its own without a terminal, holds no descriptor but those of the works, and ends within kMostTime of the
// guest's end. The launcher that loses it must end the guest: lost() tells.
class Settler {
 public:
  static constexpr auto kMostTime = std::chrono::seconds(60);

  // Forks. Returns at once, while the process writes the marker of the session.
  [[nodiscard]] static base::Result<Settler> start(const Errand& errand);
  Settler() = default;
  Settler(Settler&& other) noexcept;
  Settler& operator=(Settler&& other) noexcept;
  Settler(const Settler&) = delete;
  Settler& operator=(const Settler&) = delete;
  // Hangs up and waits for the process. What was guarded is settled then, and told of in the state folder.
  ~Settler() { hang_up(); }

  // Waits until the marker stands: what is made from here on is on record, whoever is killed.
  [[nodiscard]] base::Status recorded();
  // Names the guest, which has no agent yet. Returns at once. `scratch` may be -1; both stay the caller's.
  [[nodiscard]] base::Status guard(int pidfd, pid_t guest, int scratch);
  // Waits for the marker, with the guarded guest in it. Before begin().
  [[nodiscard]] base::Status prepare();
  // From here on there is something to settle: the agent starts next. Returns at once, and holds whatever becomes of
  // the launcher.
  [[nodiscard]] base::Status begin(const guest::ProbeRecord& evidence);
  // Ends what there is of the guest, has the works done, and waits for that and for the end of the process.
  [[nodiscard]] base::Result<workspace::Settled> settle();

  // Where the process tells of other name servers, for egress::Options::name_servers; invalid unless it follows them.
  [[nodiscard]] base::Fd take_name_servers() { return std::move(name_servers_); }

  // For poll(2): readable when the process is gone.
  [[nodiscard]] int fd() const { return socket_.get(); }
  explicit operator bool() const { return socket_.valid(); }

 private:
  void hang_up();
  [[nodiscard]] base::Result<base::Fd> hear() const;
  Settler(base::Fd socket, base::Fd name_servers, pid_t pid)
      : socket_(std::move(socket)), name_servers_(std::move(name_servers)), pid_(pid) {}
  base::Fd socket_;
  base::Fd name_servers_;
  base::Fd marker_;  // shared lock
  bool guards_ = false;
  pid_t pid_ = -1;
};

}  // namespace belljar::session
