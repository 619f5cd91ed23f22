#include "session/launch_parts.h"

#include <cstdlib>
#include <utility>

#include "base/path.h"
#include "session/launcher_seal.h"
#include "session/terminal.h"

namespace belljar::session {

base::Status seal_launcher(tiers::jail::Guest& guest, WayOut& way_out, const plan::Plan& plan) {
  // Before the other thread opens anything: a number that is listed here may mean another file by the time it is
  // closed.
  BELLJAR_TRY(close_inherited());
  const DialPorts ports = launcher_ports(plan);
  base::Status keeper_sealed;
  guest.keeper().run([&] {
    way_out.prepare();
    keeper_sealed = seal_thread(ports);
  });
  const base::Status own = seal_thread(ports);
  guest.keeper().wait_for_job();
  BELLJAR_TRY(own);
  BELLJAR_TRY(keeper_sealed);
  BELLJAR_TRY(seal_process());
  way_out.start();
  return {};
}

RuleDoor open_door(const plan::Plan& plan, const RunOptions& options, const std::string& session) {
  if (options.launch_record.empty() || !options.release) return {};
  auto door = make_rule_door(options.state_folder, session, options.launch_record, plan);
  return door ? std::move(*door) : RuleDoor{};
}

std::string tls_program(const RunOptions& options) {
  return base::parent_of(options.guest_path) + "/belljar-tls";
}

base::Result<Asker> start_asker(const plan::Plan& plan, const RunOptions& options) {
  if (!plan.ask || !options.release) return Asker();
  return Asker::start({.time = std::chrono::seconds(plan.ask_seconds),
                       .folder = plan.work_folder,
                       .kept_in = options.answers_kept_in,
                       .keep = options.keep_answer});
}

void settle(Settler& settler, Settlement& settlement) {
  if (!settler) return;
  auto settled = settler.settle();
  if (settled) {
    settlement.after = std::move(*settled);
  } else {
    settlement.after.add_unreleased(settled.error().message());
  }
}

TerminalFilter::Options screen_of(const plan::Plan& plan) {
  return {.clipboard_write = plan.clipboard == policy::Clipboard::kAllow,
          .utf8 = speaks_utf8(::getenv("LC_ALL"), ::getenv("LC_CTYPE"), ::getenv("LANG"))};
}

}  // namespace belljar::session
