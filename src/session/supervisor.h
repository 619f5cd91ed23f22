// What the launcher does while the command runs.
#pragma once

#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "plan/plan.h"
#include "session/asker.h"
#include "session/channels.h"
#include "session/settlement.h"
#include "session/settler.h"
#include "session/signals.h"
#include "session/terminal.h"
#include "session/way_in.h"
#include "session/way_out.h"
#include "tiers/jail/launch.h"

namespace belljar::session {

// Watches over a released guest until it is gone.
class Supervisor {
 public:
  Supervisor(const plan::Plan& plan, tiers::jail::Guest& guest, WayOut& way_out, WayIn& way_in, Channels& channels,
             const Signals& signals, const Settler& settler, Asker& asker, base::BootAlarm alarm)
      : guest_(guest),
        way_out_(way_out),
        way_in_(way_in),
        channels_(channels),
        signals_(signals),
        settler_(settler),
        asker_(asker),
        alarm_(std::move(alarm)),
        terminal_(guest.take_terminal()) {
    if (plan.limits.wall_seconds) deadline_ = base::Deadline::after(std::chrono::seconds(*plan.limits.wall_seconds));
    alarm_.set(deadline_);
  }
  // For a plan with a wall time.
  static base::Result<base::BootAlarm> alarm_for(const plan::Plan& plan) {
    return plan.limits.wall_seconds ? base::BootAlarm::create() : base::BootAlarm();
  }
  // In place of the plan's wall time: by then nothing of the guest is left, so it is told to end before.
  void end_by(const base::Deadline& deadline);
  void run(Settlement& settlement);

 private:
  void attach_terminal();
  void wait_once();
  void on_message();
  void on_signal(int signal);
  void on_deadline();
  void on_lost_settler();
  void on_failed_audit();
  void on_asker();
  void hand_over();
  [[nodiscard]] bool moves(const Relay& relay) const;
  void redraw() const;
  void suspend();
  void end(int signal);
  void drain();
  void conclude(Settlement& settlement) const;
  [[nodiscard]] int timeout() const;

  tiers::jail::Guest& guest_;
  WayOut& way_out_;
  WayIn& way_in_;
  Channels& channels_;
  const Signals& signals_;
  const Settler& settler_;
  Asker& asker_;
  base::BootAlarm alarm_;
  base::Fd terminal_;
  RawTerminal raw_;
  base::Deadline deadline_;
  base::Deadline kill_at_;
  std::chrono::nanoseconds grace_{std::chrono::seconds(2)};  // between TERM and KILL
  bool started_ = false;  // the command; before, nobody could take what is typed, and a ^Z would stop nothing
  bool gone_ = false;
  bool timed_out_ = false;
  bool told_to_end_ = false;
  bool lost_settler_ = false;
  bool audit_failed_ = false;
  bool asking_ = false;        // the terminal is the asker's
  bool handing_over_ = false;  // it waits for it
  bool suspended_ = false;     // the command has stopped meanwhile
  bool control_open_ = true;
  int exec_error_ = 0;
  int status_ = -1;  // wait status of the command, once init has told
};

}  // namespace belljar::session
