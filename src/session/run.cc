#include "session/run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "plan/explain.h"
#include "plan/make_plan.h"
#include "session/after.h"
#include "session/agent_files.h"
#include "session/asker.h"
#include "session/channels.h"
#include "session/container.h"
#include "session/launch_parts.h"
#include "session/launcher_seal.h"
#include "session/limits.h"
#include "session/settler.h"
#include "session/signals.h"
#include "session/supervisor.h"
#include "session/terminal.h"
#include "session/unsealed.h"
#include "session/way_in.h"
#include "session/way_out.h"
#include "tiers/bwrap/launch.h"
#include "tiers/jail/launch.h"

namespace belljar::session {
namespace {

using tiers::jail::Guest;

constexpr auto kProbeTime = std::chrono::seconds(20);

std::string utc_now() {
  const time_t now = std::time(nullptr);
  tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

base::Result<Errand> errand_of(const plan::Plan& plan, const tiers::jail::Program& program, const RunOptions& options,
                               const Settlement& settlement, const workspace::KeptFiles& agent_files,
                               const linux::Cgroup& group) {
  Errand out{
      settlement.session, settlement.started, options.state_folder, {}, {}, plan.network == policy::Network::kDeny};
  if (options.release) {
    BELLJAR_ASSIGN(out.works, works_after({plan, program, settlement.session, options.state_folder, agent_files}));
    out.works.insert(out.works.end(), options.works.begin(), options.works.end());
  }
  if (!group.empty()) out.works.push_back(removal_of(group));
  if (!out.works.empty()) out.plan = plan;
  return out;
}

// A launch of either tier that has a guest.
struct Prepared {
  tiers::jail::Prepared jail;
  std::unique_ptr<tiers::bwrap::Prepared> bwrap;  // in place of it
  [[nodiscard]] guest::Config& config() { return bwrap ? bwrap->config : jail.config; }
  [[nodiscard]] const tiers::jail::Program& program() const { return bwrap ? bwrap->program : jail.program; }
};

base::Result<Prepared> prepare(const plan::Plan& plan, const std::string& guest_path,
                               const tiers::jail::Copies& copies) {
  Prepared out;
  if (plan.mode == policy::Mode::kBwrap) {
    BELLJAR_ASSIGN(auto prepared, tiers::bwrap::prepare(plan, guest_path, copies));
    out.bwrap = std::make_unique<tiers::bwrap::Prepared>(std::move(prepared));
    return out;
  }
  BELLJAR_ASSIGN(out.jail, tiers::jail::prepare(plan, guest_path, copies));
  return out;
}

base::Result<Guest> start(Prepared& prepared, const tiers::jail::Stdio& stdio,
                          std::unique_ptr<tiers::jail::Keeper> keeper, const std::function<base::Status()>& meanwhile,
                          const linux::Cgroup& group) {
  if (prepared.bwrap) return tiers::bwrap::start(*prepared.bwrap, stdio, meanwhile, &group);
  return tiers::jail::start(prepared.jail, stdio, std::move(keeper), meanwhile, &group);
}

base::Status open_way_out(WayOut& way_out, Guest& guest, const plan::Plan& plan, RunOptions& options,
                          const std::string& session, Asker& asker, Settler& settler) {
  base::Fd listener = guest.take_listener();
  if (!listener) return {};
  BELLJAR_TRY(way_out.keep_audit(std::move(options.audit), session, plan.audit));
  return way_out.open(guest, std::move(listener), plan, session,
                      {open_door(plan, options, session), asker.take_questions(), settler.take_name_servers(),
                       tls_program(options), std::move(options.hook)});
}

void note_refused_copies(const tiers::jail::Program& program, Settlement& settlement) {
  for (const std::string& path : tiers::jail::refused_copies(program)) {
    settlement.after.add_note("'" + path +
                              "' was read-only: this kernel makes no overlay over it, as a private copy is");
  }
}

// A launch in a tier whose guest this process makes itself.
base::Status run_guest(const plan::Plan& plan, RunOptions& options, HeadStart head, Settlement& settlement) {
  BELLJAR_TRY(make_caches(plan));
  BELLJAR_ASSIGN(workspace::KeptFiles agent_files, open_agent_files(plan));
  BELLJAR_ASSIGN(Prepared prepared, prepare(plan, options.guest_path, copies_of(plan, agent_files)));
  const mode_t mask = ::umask(022);
  ::umask(mask);
  prepared.config().umask = mask;
  prepared.config().closed = options.closed;
  const Signals signals;
  BELLJAR_ASSIGN(Channels channels, open_channels(options.closed, screen_of(plan)));
  BELLJAR_ASSIGN(auto ports, WayIn::listen(plan.expose));
  linux::Cgroup group;
  const auto make_group = [&]() -> base::Status {
    BELLJAR_ASSIGN(group, finish_group(std::move(head.group), plan, settlement.session, head.grounds));
    group.open_counters();
    return {};
  };
  if (!head.keeper) BELLJAR_TRY(make_group());
  Settler settler;
  // While the guest is made.
  const auto prepare_end = [&, begun = head.keeper != nullptr]() -> base::Status {
    if (begun) BELLJAR_TRY(make_group());
    BELLJAR_ASSIGN(const Errand errand, errand_of(plan, prepared.program(), options, settlement, agent_files, group));
    if (errand.works.empty()) return {};
    BELLJAR_ASSIGN(settler, Settler::start(errand));
    return {};
  };
  auto started = start(prepared, channels.stdio, std::move(head.keeper), prepare_end, group);
  if (!started && settler) BELLJAR_TRY(settler.recorded());  // it may have taken the group away
  BELLJAR_ASSIGN(Guest guest, std::move(started));
  for (base::Fd& end : channels.guest_ends) end.reset();
  base::Fd scratch = guest.take_scratch();
  std::vector<base::Fd> more_scratch = guest.take_more_scratch();
  if (settler) BELLJAR_TRY(settler.guard(guest.pidfd(), guest.pid(), scratch.get()));
  WayIn way_in;
  BELLJAR_TRY(way_in.open(guest, std::move(ports), plan.expose));
  BELLJAR_ASSIGN(Asker asker, start_asker(plan, options));
  WayOut way_out;
  BELLJAR_TRY(open_way_out(way_out, guest, plan, options, settlement.session, asker, settler));
  BELLJAR_TRY(seal_launcher(guest, way_out, plan));
  BELLJAR_ASSIGN(settlement.evidence, guest.prove(base::Deadline::after(kProbeTime)));
  if (options.proved) options.proved(settlement.evidence);
  if (!options.release) {
    guest.kill();
    settlement.reason = EndReason::kExited;
    settlement.exit_code = 0;
    return {};
  }
  if (settler) {
    BELLJAR_TRY(settler.prepare());
    BELLJAR_TRY(settler.begin(settlement.evidence));
  }
  BELLJAR_ASSIGN(base::BootAlarm alarm, Supervisor::alarm_for(plan));
  BELLJAR_TRY(guest.release());
  Supervisor(plan, guest, way_out, way_in, channels, signals, settler, asker, std::move(alarm)).run(settlement);
  way_in.close();
  way_out.close(settlement);
  settle_limits(settlement, plan, group, guest.usage(), scratch.get(), more_scratch);
  group.leave();
  scratch.reset();
  more_scratch.clear();
  settle(settler, settlement);
  note_refused_copies(prepared.program(), settlement);
  return {};
}

}  // namespace

std::string new_session_id() {
  return base::random_hex(8);
}

HeadStart begin(const policy::Policy& policy, const linux::CgroupGrounds& grounds, const std::string& session) {
  HeadStart out;
  out.grounds = grounds;
  if (policy.isolation.mode != policy::Mode::kJail) return out;
  const bool isolated = policy.isolation.network == policy::Network::kDeny;
  const auto foundation = tiers::jail::foundation_of(isolated ? plan::kProxyPort : uint16_t{0},
                                                     policy.isolation.transparent, ::geteuid() == 0, policy.hook);
  out.session = session;
  out.group = begin_group(out.session, grounds);
  auto keeper = tiers::jail::Keeper::start(foundation, out.group.folder_for_clone());
  if (keeper) out.keeper = std::move(*keeper);
  return out;
}

Settlement new_settlement() {
  Settlement out;
  out.session = new_session_id();
  out.started = utc_now();
  return out;
}

base::Result<Settlement> run(const plan::Plan& plan, RunOptions options, HeadStart head) {
  const auto started = base::boot_now();
  Settlement settlement = new_settlement();
  if (!head.session.empty()) settlement.session = head.session;
  if (plan.mode == policy::Mode::kNone) {
    if (!options.release) return base::refuse("probe", "mode none", "there is no boundary to prove", "use mode jail");
    BELLJAR_TRY(run_unsealed(plan, options, head.grounds, settlement));
  } else if (plan.mode == policy::Mode::kDocker) {
    BELLJAR_TRY(run_container(plan, options, head.engine, settlement));
  } else {
    BELLJAR_TRY(run_guest(plan, options, std::move(head), settlement));
  }
  settlement.duration = base::boot_now() - started;
  return settlement;
}

}  // namespace belljar::session
