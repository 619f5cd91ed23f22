// The jail tier: Linux namespaces of our own.
#pragma once

#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "guest/config.h"
#include "guest/protocol.h"
#include "linux/cgroup.h"
#include "linux/user_namespace.h"
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

// What serves the guest's programs that know no proxy, made in its network namespace: the listener that connections to
// synthetic addresses (linux/local_route.h) are led to, and the sockets of its resolver.
struct Transparent {
  base::Fd redirected;
  base::Fd datagrams;
  base::Fd streams;
  bool v6 = false;
  std::string missing;  // why there is none, when it was asked for
  [[nodiscard]] bool there() const { return redirected.valid(); }
};

// A guest that is set up and waits. Ends when the object goes.
class Guest {
 public:
  // What another tier's start has made of a guest of its own.
  struct Parts {
    std::unique_ptr<Keeper> keeper{};
    base::Fd monitor{};  // pidfd of the launcher's child that init descends from
    base::Fd life{};     // when it is closed, `monitor` ends all that there is
    base::Fd init{};     // pidfd
    pid_t pid = -1;      // init's
    base::Fd control{};
    base::Fd listener{};
    base::Fd scratch{};
    std::vector<base::Fd> more_scratch{};
    // Init is a child of somebody else's, and the launcher perhaps may not signal it: the end of `control` ends it.
    bool foreign = false;
  };

  Guest() = default;
  explicit Guest(Parts parts);
  Guest(Guest&&) = default;
  Guest& operator=(Guest&&) = default;
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest();  // kills init, and the kernel with it everything in its pid namespace; waits for that

  // The listener made in the guest's network namespace, once; empty when the network is the host's.
  [[nodiscard]] base::Fd take_listener() { return std::move(listener_); }

  // The root of the guest's scratch tmpfs, once. It outlives the guest, and with it everything that lay in a scratch
  // folder (scratch_folder() tells which): made by the guest, so to be read without following anything. The memory is
  // given back when the descriptor is closed.
  [[nodiscard]] base::Fd take_scratch() { return std::move(scratch_); }
  // Further tmpfs of the guest's, where its scratch is not one, to see whether they are full.
  [[nodiscard]] std::vector<base::Fd> take_more_scratch() { return std::move(more_scratch_); }

  // Once; not there when it was not asked for or cannot be had here.
  [[nodiscard]] Transparent take_transparent() { return std::move(transparent_); }

  // Waits for the probe's record; on success the evidence, else the error that names the protection that is missing.
  // The master of the guest's terminal comes with it.
  [[nodiscard]] base::Result<guest::ProbeRecord> prove(const base::Deadline& deadline);

  // Lets the agent start. Call once, after prove().
  [[nodiscard]] base::Status release();

  [[nodiscard]] base::Status send_signal(int signal);
  // Asks init for a TCP socket of the guest's network namespace, of AF_INET or AF_INET6. The answer is a kSocket
  // message, in the order of the questions; take_socket() has the descriptor then. Thread-safe.
  [[nodiscard]] base::Status ask_for_socket(int family);
  [[nodiscard]] base::Fd take_socket() { return std::move(socket_); }
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

  // After its end: what init, and the processes that it has collected, have used (getrusage(2)).
  [[nodiscard]] const rusage& usage() const { return usage_; }

  // Ends every process of the guest and waits until they are gone. Safe to call twice.
  void kill();

 private:
  friend base::Result<Guest> start(Prepared& prepared, const Stdio& stdio, std::unique_ptr<Keeper> keeper,
                                   const std::function<base::Status()>& meanwhile, const linux::Cgroup* group);
  std::unique_ptr<Keeper> keeper_;
  base::Fd pidfd_;
  base::Fd monitor_;  // the launcher's own child, when init is not
  base::Fd life_;
  rusage usage_{};
  base::Fd control_;
  base::Fd listener_;
  Transparent transparent_;
  base::Fd scratch_;
  std::vector<base::Fd> more_scratch_;
  base::Fd terminal_;
  base::Fd socket_;
  pid_t pid_ = -1;
  bool foreign_ = false;
};

// `guest_path` is belljar-guest: a regular file of root's or the caller's that nobody else can write.
// `copies` are the contents of the plan's copies.
[[nodiscard]] base::Result<Prepared> prepare(const plan::Plan& plan, const std::string& guest_path,
                                             const Copies& copies = {});

// Clones the guest and sets it up to the point where init runs.
[[nodiscard]] base::Result<Guest> start(Prepared& prepared, const Stdio& stdio);
// The same with a child that was cloned beforehand, of the foundation that the program has; without one it is cloned
// now. `meanwhile` (may be empty) is called once the child is at work on its order; its error ends the launch. It may
// make `group`, unless that has to be cloned into and the keeper is started here.
// The guest enters `group`, if there is one, before anything of it is made; a child that was cloned beforehand was
// cloned into the v2 folder of it.
[[nodiscard]] base::Result<Guest> start(Prepared& prepared, const Stdio& stdio, std::unique_ptr<Keeper> keeper,
                                        const std::function<base::Status()>& meanwhile = {},
                                        const linux::Cgroup* group = nullptr);

// For the other tiers whose guests run belljar-guest.

// Refuses a belljar-guest that is no regular file, or that others than root and the caller could have written.
[[nodiscard]] base::Status check_guest_program(const std::string& path, const struct stat& found);

// The user namespaces of a launch by root. `id_map` stays empty when the guest's own serves, or none is needed.
struct UserNamespaces {
  linux::UserNamespace guest;
  linux::UserNamespace id_map;
};
[[nodiscard]] base::Result<UserNamespaces> make_user_namespaces(const Program& program);

// The inodes of the launcher's namespaces, by the order of guest::kNamespaceNames; 0 for each that the guest shares.
// `separate` are CLONE_NEW bits.
[[nodiscard]] base::Result<std::vector<uint64_t>> own_namespaces(uint64_t separate);

// What has been handed out, under the tag of the protocol, before init proves itself.
[[nodiscard]] base::Result<base::Fd> take_descriptor(int control, std::string_view what, int flags);

}  // namespace belljar::tiers::jail
