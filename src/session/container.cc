#include "session/container.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/path.h"
#include "session/after.h"
#include "session/agent_files.h"
#include "session/asker.h"
#include "session/channels.h"
#include "session/launch_parts.h"
#include "session/limits.h"
#include "session/settler.h"
#include "session/signals.h"
#include "session/state_folder.h"
#include "session/supervisor.h"
#include "session/way_in.h"
#include "session/way_out.h"
#include "tiers/docker/launch.h"
#include "tiers/docker/remove.h"

namespace belljar::session {
namespace {

namespace docker = tiers::docker;

constexpr auto kMakingTime = std::chrono::seconds(60);  // until the container's first process is met
constexpr auto kProbeTime = std::chrono::seconds(20);
constexpr auto kRemovalTime = std::chrono::seconds(30);  // of the settler's minute

workspace::Settled settled_of(docker::Removal removal) {
  workspace::Settled out;
  for (std::string& text : removal.notes) out.add_note(std::move(text));
  for (std::string& text : removal.unreleased) out.add_unreleased(std::move(text));
  return out;
}

workspace::Work removal_of(const docker::Remains& remains) {
  workspace::Work out;
  out.name = kContainerRemoval;
  out.record = docker::encode(remains);
  out.always = true;
  out.run = [remains](int scratch) -> base::Result<workspace::Settled> {
    // Without a scratch the guest was never met: its making may still be under way.
    return settled_of(docker::remove(remains, scratch < 0, base::Deadline::after(kRemovalTime)));
  };
  return out;
}

base::Result<Errand> errand_of(const plan::Plan& plan, const RunOptions& options, const Settlement& settlement,
                               ContainerRecipe& recipe, const docker::Remains& remains) {
  Errand out{
      settlement.session, settlement.started, options.state_folder, plan, {}, plan.network == policy::Network::kDeny};
  if (options.release) {
    out.works = std::move(recipe.works);
    out.works.insert(out.works.end(), options.works.begin(), options.works.end());
  }
  out.works.push_back(removal_of(remains));
  return out;
}

// The captured deadline holds for the making as well.
base::Deadline making_deadline(const plan::Plan& plan, const base::Deadline& captured) {
  std::chrono::seconds time = kMakingTime;
  if (plan.limits.wall_seconds) time = std::min(time, std::chrono::seconds(*plan.limits.wall_seconds));
  const base::Deadline out = base::Deadline::after(time);
  return captured.at() < out.at() ? captured : out;
}

base::Deadline probe_deadline(const base::Deadline& captured) {
  const base::Deadline out = base::Deadline::after(kProbeTime);
  return captured.at() < out.at() ? captured : out;
}

// Ended by itself, and too late all the same.
void hold_deadline(const base::Deadline& captured, Settlement& settlement) {
  constexpr int kTimedOut = 124;
  if (!captured.passed() || settlement.reason != EndReason::kExited) return;
  settlement.reason = EndReason::kDeadline;
  settlement.exit_code = kTimedOut;
}

}  // namespace

base::Result<workspace::Settled> remove_recorded_container(std::string_view record, docker::Reach& reach) {
  BELLJAR_ASSIGN(const docker::Remains remains, docker::decode_remains(record));
  if (const auto answers = reach.answers(remains.engine); !answers) {
    workspace::Settled out;
    out.add_unreleased(docker::unreleased_text(remains, answers.error()));
    return out;
  }
  return settled_of(docker::remove(remains, true, base::Deadline::after(kRemovalTime)));
}

// Its parent is the launcher's alone, as the state folder is.
base::Result<std::string> own_folder(const RunOptions& options, const std::string& name) {
  if (options.state_folder.empty()) {
    return base::refuse("make the folder of the container", "", "neither XDG_STATE_HOME nor HOME says where, refusing",
                        "set HOME");
  }
  BELLJAR_ASSIGN(const StateFolder parent, StateFolder::open(base::parent_of(options.state_folder) + "/" + name));
  return parent.path();
}

base::Status run_container(const plan::Plan& plan, RunOptions& options, const EngineLook& look,
                           Settlement& settlement) {
  if (!look.engine || !look.image) {
    return base::refuse("launch", plan.container.image, "the container engine was not asked for it, refusing");
  }
  BELLJAR_ASSIGN(workspace::KeptFiles agent_files, open_agent_files(plan));
  const tiers::jail::Copies copies = copies_of(plan, agent_files);
  ContainerRecipe recipe;
  const tiers::jail::Program none;
  if (options.release) {
    BELLJAR_ASSIGN(recipe.works, works_after({plan, none, settlement.session, options.state_folder, agent_files}));
  }
  recipe.prepare = [&](docker::Meeting& meeting) {
    return docker::prepare(plan, copies, settlement.session, meeting, *look.engine, *look.image);
  };
  return run_in_container(plan, options, *look.engine, std::move(recipe), settlement);
}

base::Status run_in_container(const plan::Plan& plan, RunOptions& options, const docker::Engine& engine,
                              ContainerRecipe recipe, Settlement& settlement) {
  const base::Deadline deadline = making_deadline(plan, recipe.deadline);
  struct stat guest_program{};
  if (::lstat(options.guest_path.c_str(), &guest_program) != 0) {
    return base::system_error("open", options.guest_path, errno, "belljar-guest belongs beside belljar; install both");
  }
  BELLJAR_TRY(tiers::jail::check_guest_program(options.guest_path, guest_program));
  const Signals signals;
  BELLJAR_ASSIGN(Channels channels, open_channels(options.closed, screen_of(plan)));
  BELLJAR_ASSIGN(auto ports, WayIn::listen(plan.expose));
  BELLJAR_ASSIGN(std::string folder, own_folder(options, "containers"));
  folder += "/" + settlement.session;
  const docker::Remains remains{plan.container.engine, settlement.session, folder, recipe.more};
  BELLJAR_ASSIGN(const Errand errand, errand_of(plan, options, settlement, recipe, remains));
  // From here on whatever is made is known to somebody who will end it. Its end waits for the settler's.
  BELLJAR_ASSIGN(Settler settler, Settler::start(errand));
  BELLJAR_ASSIGN(auto meeting, docker::Meeting::make(std::move(folder), options.guest_path));
  BELLJAR_ASSIGN(auto prepared, recipe.prepare(meeting));
  const mode_t mask = ::umask(022);
  ::umask(mask);
  prepared.config.umask = mask;
  prepared.config.closed = options.closed;
  BELLJAR_TRY(settler.recorded());
  BELLJAR_ASSIGN(tiers::jail::Guest guest, docker::start(engine, prepared, meeting, channels.stdio, deadline));
  for (base::Fd& end : channels.guest_ends) end.reset();
  base::Fd scratch = guest.take_scratch();
  BELLJAR_TRY(settler.guard(guest.pidfd(), guest.pid(), scratch.get()));
  WayIn way_in;
  BELLJAR_TRY(way_in.open(guest, std::move(ports), plan.expose));
  BELLJAR_ASSIGN(Asker asker, start_asker(plan, options));
  WayOut way_out;
  if (base::Fd listener = guest.take_listener()) {
    BELLJAR_TRY(way_out.keep_audit(std::move(options.audit), settlement.session, plan.audit));
    BELLJAR_TRY(way_out.open(guest, std::move(listener), plan, settlement.session,
                             {open_door(plan, options, settlement.session), asker.take_questions(),
                              settler.take_name_servers(), tls_program(options), std::move(options.hook)}));
  }
  BELLJAR_TRY(seal_launcher(guest, way_out, plan));
  BELLJAR_ASSIGN(settlement.evidence, guest.prove(probe_deadline(recipe.deadline)));
  if (options.proved) options.proved(settlement.evidence);
  BELLJAR_TRY(settler.prepare());
  if (!options.release) {
    guest.kill();
    settlement.reason = EndReason::kExited;
    settlement.exit_code = 0;
    settle(settler, settlement);
    return {};
  }
  if (recipe.deadline.passed()) {
    return base::refuse("start the command", settlement.session, "the time was up, refusing");
  }
  BELLJAR_TRY(settler.begin(settlement.evidence));
  BELLJAR_ASSIGN(base::BootAlarm alarm, base::BootAlarm::create());
  BELLJAR_TRY(guest.release());
  Supervisor supervisor(plan, guest, way_out, way_in, channels, signals, settler, asker, std::move(alarm));
  supervisor.end_by(recipe.deadline);
  supervisor.run(settlement);
  hold_deadline(recipe.deadline, settlement);
  way_in.close();
  way_out.close(settlement);
  settle_limits(settlement, plan, linux::Cgroup(), rusage{}, scratch.get());
  scratch.reset();
  settle(settler, settlement);
  for (const std::string& text : settlement.after.unreleased()) settlement.unreleased.push_back(text);
  return {};
}

}  // namespace belljar::session
