// The jail tier: Linux namespaces of our own.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "guest/config.h"
#include "guest/protocol.h"
#include "plan/plan.h"
#include "tiers/jail/keeper.h"
#include "tiers/jail/program.h"

namespace belljar::tiers::jail {

// A launch, ready to be carried out: what the child does and what init and the probe are told. Data only, so that a
// test may take a protection away before start(). The strings of `config` point into the plan, which must outlive it.
struct Prepared {
  Program program;
  guest::Config config;
  std::string guest_path;  // of belljar-guest
};

// How the guest's 0, 1 and 2 are made: three descriptors that become the guest's, or the guest's own terminal for
// those that are -1 (0 and 1 together; 2 may be a pipe beside a terminal).
struct Stdio {
  std::array<int, 3> fds{-1, -1, -1};
};

// A guest that is set up and waits. Ends when the object goes.
class Guest {
 public:
  Guest() = default;
  Guest(Guest&&) = default;
  Guest& operator=(Guest&&) = default;
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest();  // kills init, and the kernel with it everything in its pid namespace; waits for that

  // The listener made in the guest's network namespace, once; empty when the network is the host's.
  [[nodiscard]] base::Fd take_listener() { return std::move(listener_); }

  // Waits for the probe's record; on success the evidence, else the error that names the protection that is missing.
  // The master of the guest's terminal comes with it.
  [[nodiscard]] base::Result<guest::ProbeRecord> prove(const base::Deadline& deadline);

  // Lets the agent start. Call once, after prove().
  [[nodiscard]] base::Status release();

  [[nodiscard]] base::Status send_signal(int signal);
  // The next message of init; an end of the conversation is EPIPE. Not believed: the caller checks with the kernel.
  [[nodiscard]] base::Result<guest::GuestMessage> receive();

  // Readable when init has ended (pidfd_open(2)).
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  [[nodiscard]] int control() const { return control_.get(); }
  [[nodiscard]] base::Fd take_terminal() { return std::move(terminal_); }
  // Init's pid in the launcher's namespace, for messages only.
  [[nodiscard]] pid_t pid() const { return pid_; }

  // The thread that the guest hangs on.
  [[nodiscard]] Keeper& keeper() { return *keeper_; }

  // Ends every process of the guest and waits until they are gone. Safe to call twice.
  void kill();

 private:
  friend base::Result<Guest> start(Prepared& prepared, const Stdio& stdio, std::unique_ptr<Keeper> keeper);
  std::unique_ptr<Keeper> keeper_;
  base::Fd pidfd_;
  base::Fd control_;
  base::Fd listener_;
  base::Fd terminal_;
  pid_t pid_ = -1;
};

// `guest_path` is belljar-guest: a regular file of root's or the caller's that nobody else can write.
[[nodiscard]] base::Result<Prepared> prepare(const plan::Plan& plan, const std::string& guest_path);

// Clones the guest and sets it up to the point where init runs.
[[nodiscard]] base::Result<Guest> start(Prepared& prepared, const Stdio& stdio);
// The same with a child that was cloned beforehand, of the foundation that the program has.
[[nodiscard]] base::Result<Guest> start(Prepared& prepared, const Stdio& stdio, std::unique_ptr<Keeper> keeper);

}  // namespace belljar::tiers::jail
