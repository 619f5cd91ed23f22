#include "cli/launch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "base/path.h"
#include "base/text.h"
#include "cli/evidence.h"
#include "cli/hook_token.h"
#include "cli/kept_launch.h"
#include "cli/launch_end.h"
#include "cli/launch_record.h"
#include "cli/options.h"
#include "cli/policy_options.h"
#include "cli/project_command.h"
#include "cli/recover_command.h"
#include "cli/target_launch.h"
#include "linux/chroot.h"
#include "plan/explain.h"
#include "plan/make_plan.h"
#include "plan/validate_for_target.h"
#include "policy/load.h"
#include "policy/parse.h"
#include "policy/show.h"
#include "session/facts.h"
#include "session/limits.h"
#include "session/run.h"
#include "session/state_folder.h"
#include "store/standing.h"

namespace belljar::cli {
namespace {

enum class Use : uint8_t { kRun, kShell, kPlan, kProbe };

struct Launch {
  policy::FlagOverrides flags;
  std::optional<std::string> policy_file;
  std::string report_file;
  std::string resume;  // id of the launch to start again
  plan::Request request;
  std::string folder;        // --folder
  std::string link_timeout;  // --link-timeout
  bool keep = false;
  bool json = false;
  bool help = false;
};

std::vector<Option> launch_options(Launch& launch, Use use) {
  std::vector<Option> out = policy_options(launch.flags, launch.policy_file);
  out.push_back({"--chdir", "FOLDER", "where the command starts, inside the guest", keep(launch.request.chdir)});
  out.push_back({"--folder", "FOLDER", "with --target, the work folder there: absolute, or ~/…; standard: as here",
                 keep(launch.folder)});
  out.push_back({"--link-timeout", "TIME", "with --target, so long a silence ends the session (standard: 30s)",
                 keep(launch.link_timeout)});
  if (use == Use::kRun || use == Use::kPlan) {
    out.push_back(
        {"--resume", "ID", "as that session was launched, whatever was said since; see --keep", keep(launch.resume)});
  }
  if (use == Use::kRun || use == Use::kShell) {
    out.push_back({"--keep", "", "keep this launch for --resume, as those of an agent are", turn_on(launch.keep)});
    out.push_back({"--report", "FILE", "write the settlement there, as JSON", keep(launch.report_file)});
  } else {
    out.push_back({"--json", "", "for programs", turn_on(launch.json)});
  }
  out.push_back({"--help", "", "this page", turn_on(launch.help)});
  return out;
}

base::Result<Launch> parse_launch(std::span<const std::string> arguments, Use use) {
  Launch launch;
  BELLJAR_ASSIGN(launch.request.command, parse_options(arguments, launch_options(launch, use)));
  launch.request.tty = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  if (launch.help || !launch.request.command.empty()) {
    if (use == Use::kShell && !launch.help) {
      return base::refuse("read the arguments", launch.request.command.front(), "belljar shell takes no command",
                          "use 'belljar run -- COMMAND'");
    }
    return launch;
  }
  if (use == Use::kProbe) launch.request.command = {"/bin/true"};
  if (use == Use::kShell) {
    const char* shell = ::getenv("SHELL");
    launch.request.command = {shell != nullptr && *shell != '\0' ? shell : "/bin/sh"};
  }
  return launch;
}

std::string help_text(Use use, Launch& launch) {
  std::string_view head;
  switch (use) {
    case Use::kRun:
      head =
          "Usage: belljar run [OPTION]... -- COMMAND [ARGUMENT]...\n"
          "Runs COMMAND sealed, with the current folder as its work folder.\n\n"
          "Examples:\n"
          "  belljar run --agent claude -- claude\n"
          "  belljar run --allow-host example.com -- curl https://example.com/\n"
          "  belljar run --timeout 30m --report end.json -- make test\n"
          "  belljar run --resume 0123456789abcdef\n";
      break;
    case Use::kShell:
      head =
          "Usage: belljar shell [OPTION]...\nStarts your shell sealed, in the current folder.\n\nExample:\n"
          "  belljar shell --read /srv/data\n";
      break;
    case Use::kPlan:
      head =
          "Usage: belljar plan [OPTION]... -- COMMAND [ARGUMENT]...\nPrints what 'belljar run' would do, and does "
          "nothing.\n\nExample:\n  belljar plan --json --agent codex -- codex\n";
      break;
    case Use::kProbe:
      head =
          "Usage: belljar probe [OPTION]...\nStarts a guest, has it prove itself from the inside, prints the "
          "evidence and ends it.\n\nExample:\n  belljar probe --json\n";
      break;
  }
  const std::vector<Option> options = launch_options(launch, use);
  return std::string(head) + "\nOptions:\n" + options_help(options);
}

// What is to be launched, and by whom.
struct What {
  KeptLaunch launch;
  session::Launcher launcher;
  std::string session;        // its id
  std::string record{};       // what `belljar reload` has to know; empty: it is not offered
  bool ordered = false;       // by another machine, which keeps it
  std::string authorities{};  // of the order (remote::LaunchOrder)
};

// The policy and the request of a launch that is none of old.
base::Result<KeptLaunch> new_launch(const Context& context, const Launch& launch, const session::Launcher& launcher,
                                    const LaunchRecord& record) {
  KeptLaunch out{{}, launch.request, launcher.folder};
  BELLJAR_ASSIGN(out.policy, load_policy(context, launcher, record));
  return out;
}

base::Result<KeptLaunch> old_launch(const Launch& launch, session::Launcher& launcher) {
  if (launch.policy_file || !launch.request.chdir.empty()) {
    return base::refuse("resume the launch", launch.resume, "it keeps what it was launched with, refusing",
                        "leave out --policy and --chdir");
  }
  BELLJAR_ASSIGN(KeptLaunch out, resume_launch(store::places_of(launcher.environment), launch.resume, launch.flags));
  if (!launch.request.command.empty()) out.request.command = launch.request.command;
  out.request.tty = launch.request.tty;
  launcher.folder = out.folder;
  return out;
}

base::Result<What> what_to_launch(const Context& context, const Launch& launch) {
  // Before any thread is there. An ordinary user cannot: the kernel's refusal then names the reason.
  if (::geteuid() == 0) BELLJAR_TRY(linux::leave_chroot());
  What out;
  BELLJAR_ASSIGN(out.launcher, session::current_launcher());
  out.session = session::new_session_id();
  if (launch.resume.empty()) {
    LaunchRecord record{out.launcher.folder, launch.policy_file,
                        launch.request.command.empty() ? std::string() : launch.request.command.front(), launch.flags};
    BELLJAR_ASSIGN(out.launch, new_launch(context, launch, out.launcher, record));
    if (record.policy_file && !record.policy_file->starts_with('/')) {
      record.policy_file = record.folder + "/" + *record.policy_file;
    }
    out.record = encode(record);
    if (!launch.folder.empty()) out.launch.target_folder = launch.folder;
  } else {
    BELLJAR_ASSIGN(out.launch, old_launch(launch, out.launcher));
    out.record = encode(LaunchRecord{out.launcher.folder, {}, {}, {}, policy::show_json(out.launch.policy)});
  }
  const policy::Policy& policy = out.launch.policy;
  const auto target = policy.target.empty() ? plan::TargetKind::kLocal : plan::TargetKind::kSsh;
  BELLJAR_TRY(plan::validate_for_target(policy, target, plan::LaunchKind::kSession));
  if (target == plan::TargetKind::kLocal && !out.launch.target_folder.empty()) {
    return base::refuse("--folder", out.launch.target_folder, "it names a folder on a target, and none is named",
                        "cd there, or say --target ssh:HOST");
  }
  return out;
}

// With `head` the guest is begun while the plan is made.
base::Result<plan::Plan> plan_launch(const What& what, session::HeadStart* head) {
  const policy::Policy& policy = what.launch.policy;
  session::Launcher launcher = what.launcher;
  session::ask_systemd_where_needed(policy, head == nullptr, launcher);
  if (head != nullptr) *head = session::begin(policy, launcher.groups, what.session);
  BELLJAR_ASSIGN(const plan::Facts facts, session::gather_facts(policy, what.launch.request, launcher,
                                                                head != nullptr ? &head->engine : nullptr));
  return plan::make_plan(policy, facts, what.launch.request);
}

remote::Use use_on_target(Use use) {
  if (use == Use::kPlan) return remote::Use::kPlan;
  return use == Use::kProbe ? remote::Use::kProbe : remote::Use::kRun;
}

// Of an agent, or when a person asked for it; then that it cannot be kept is a refusal.
base::Status keep_for_later(const Context& context, const Launch& launch, const What& what) {
  const std::string& session = what.session;
  if (what.ordered) return {};
  if (!launch.keep && launch.resume.empty() && what.launch.policy.agent.name.empty()) return {};
  const auto kept = keep_launch(store::places_of(what.launcher.environment), session, what.launch);
  if (!kept && launch.keep) return kept;
  if (!kept) {
    std::fprintf(context.err, "belljar: this launch cannot be resumed: %s\n", kept.error().message().c_str());
  } else {
    std::fprintf(context.err, "belljar: session %s (another like it: belljar run --resume %s)\n", session.c_str(),
                 session.c_str());
  }
  return {};
}

// Says the error and returns the exit code, the same for every command that makes a plan.
int refuse_plan(const Context& context, const base::Error& error) {
  report(context, error);
  return code_of_refusal(error);
}

int run_here(const Context& context, const Launch& launch, const What& what, const ReportFile& report_file) {
  session::HeadStart head;
  const auto plan = plan_launch(what, &head);
  session::RunOptions options;
  options.launch_record = what.record;
  if (!plan) return tell_refusal(context, plan.error(), {}, report_file);
  head.session = what.session;
  if (auto kept = keep_for_later(context, launch, what); !kept) {
    return tell_refusal(context, kept.error(), *plan, report_file);
  }
  for (const std::string& weakening : plan->weakenings) {
    std::fprintf(context.err, "belljar: weaker than it could be: %s\n", base::escape(weakening).c_str());
  }
  if (plan->ask) {
    options.answers_kept_in = project_folder_of(plan->work_folder);
    options.keep_answer = [folder = options.answers_kept_in](const std::string& rule) {
      return allow_in_project(folder, rule);
    };
  }
  options.guest_path = context.guest_path;
  options.closed = context.closed;
  options.state_folder = session::state_path();
  if (!plan->audit.file.empty()) {
    auto opened = open_own_file("open the audit file", plan->audit.file, O_RDWR | O_APPEND);
    if (!opened) return tell_refusal(context, opened.error(), *plan, report_file);
    options.audit = std::move(*opened);
  }
  options.hook.authorities = what.authorities;
  if (!plan->hook.token_file.empty()) {
    auto token = make_hook_token(plan->hook.token_file);
    if (!token) return tell_refusal(context, token.error(), *plan, report_file);
    options.hook.token = std::move(*token);
  }
  std::optional<session::SignalsHeld> held(std::in_place);
  const auto settlement = session::run(*plan, std::move(options), std::move(head));
  return tell_end(context, settlement, *plan, report_file, held);
}

int run_there(const Context& context, const Launch& launch, const What& what, Use use, const ReportFile& report_file) {
  if (auto kept = keep_for_later(context, launch, what); !kept) {
    return tell_refusal(context, kept.error(), {}, report_file);
  }
  TargetLaunch there{what.launch,        what.session, what.launcher.environment,
                     use_on_target(use), launch.json,  launch.link_timeout};
  const auto code = launch_on_target(context, there, report_file.file.valid());
  if (!code) return tell_refusal(context, code.error(), {}, report_file);
  if (report_file.file) {
    if (auto written = write_report(report_file, there.report); !written) return report(context, written.error());
  }
  return *code;
}

int print_plan(const Context& context, const What& what, bool json) {
  const auto plan = plan_launch(what, nullptr);
  if (!plan) return refuse_plan(context, plan.error());
  return print(context, json ? plan::explain_json(*plan) : plan::explain_text(*plan));
}

int probe_here(const Context& context, const What& what, bool json) {
  session::HeadStart head;
  const auto plan = plan_launch(what, &head);
  if (!plan) return refuse_plan(context, plan.error());
  session::RunOptions options;
  options.guest_path = context.guest_path;
  options.closed = context.closed;
  options.state_folder = session::state_path();
  options.release = false;
  options.hook.authorities = what.authorities;
  const auto settlement = session::run(*plan, std::move(options), std::move(head));
  if (!settlement) return report(context, settlement.error());
  return print(context, json ? session::settlement_json(*settlement, *plan) : evidence_text(settlement->evidence));
}

// What another machine's belljar has this one launch.
base::Result<What> what_of_order(const remote::LaunchOrder& order) {
  if (::geteuid() == 0) BELLJAR_TRY(linux::leave_chroot());
  What out;
  BELLJAR_ASSIGN(policy::PolicyLayer layer, policy::parse_policy(order.policy, "launch"));
  BELLJAR_ASSIGN(out.launch.policy, policy::load({std::move(layer)}, std::nullopt, {}));
  BELLJAR_ASSIGN(out.launcher, session::current_launcher());
  out.launch.request = {order.command, order.chdir, ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1};
  out.launch.folder = out.launcher.folder;
  out.session = order.session;
  out.ordered = true;
  out.authorities = order.authorities;
  out.record = encode(LaunchRecord{out.launcher.folder, {}, {}, {}, order.policy});
  return out;
}

int launch_sealed(const Context& context, std::span<const std::string> arguments, Use use) {
  auto launch = parse_launch(arguments, use);
  if (!launch) return report(context, launch.error());
  if (launch->help) return print(context, help_text(use, *launch));
  const auto report_file = open_report(launch->report_file);
  if (!report_file) return report(context, report_file.error());
  recover_before_launch(context, base::real_path(".").value_or("/"));
  const auto what = what_to_launch(context, *launch);
  if (!what) return tell_refusal(context, what.error(), {}, *report_file);
  return what->launch.policy.target.empty() ? run_here(context, *launch, *what, *report_file)
                                            : run_there(context, *launch, *what, use, *report_file);
}

}  // namespace

std::vector<Option> options_of(std::string_view command) {
  Launch launch;
  const Use use = command == "run"     ? Use::kRun
                  : command == "shell" ? Use::kShell
                  : command == "plan"  ? Use::kPlan
                                       : Use::kProbe;
  std::vector<Option> out = launch_options(launch, use);
  for (Option& option : out) option.take = nullptr;  // they refer to what ends here
  return out;
}

int run_command(const Context& context, std::span<const std::string> arguments) {
  return launch_sealed(context, arguments, Use::kRun);
}

int shell_command(const Context& context, std::span<const std::string> arguments) {
  return launch_sealed(context, arguments, Use::kShell);
}

int plan_command(const Context& context, std::span<const std::string> arguments) {
  auto launch = parse_launch(arguments, Use::kPlan);
  if (!launch) return report(context, launch.error());
  if (launch->help) return print(context, help_text(Use::kPlan, *launch));
  const auto what = what_to_launch(context, *launch);
  if (!what) return refuse_plan(context, what.error());
  if (!what->launch.policy.target.empty()) return run_there(context, *launch, *what, Use::kPlan, {});
  return print_plan(context, *what, launch->json);
}

int probe_command(const Context& context, std::span<const std::string> arguments) {
  auto launch = parse_launch(arguments, Use::kProbe);
  if (!launch) return report(context, launch.error());
  if (launch->help) return print(context, help_text(Use::kProbe, *launch));
  const auto what = what_to_launch(context, *launch);
  if (!what) return refuse_plan(context, what.error());
  if (!what->launch.policy.target.empty()) return run_there(context, *launch, *what, Use::kProbe, {});
  return probe_here(context, *what, launch->json);
}

int launch_order(const Context& context, const remote::LaunchOrder& order, int report_descriptor) {
  const auto what = what_of_order(order);
  const ReportFile report_file{{}, base::Fd(report_descriptor)};
  if (!what) return tell_refusal(context, what.error(), {}, report_file);
  if (order.use == remote::Use::kPlan) return print_plan(context, *what, order.json);
  if (order.use == remote::Use::kProbe) return probe_here(context, *what, order.json);
  recover_before_launch(context, base::real_path(what->launcher.folder).value_or("/"));
  return run_here(context, {}, *what, report_file);
}

}  // namespace belljar::cli
