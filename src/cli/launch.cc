#include "cli/launch.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/evidence.h"
#include "cli/options.h"
#include "linux/chroot.h"
#include "plan/explain.h"
#include "plan/make_plan.h"
#include "policy/load.h"
#include "policy/preset.h"
#include "session/facts.h"
#include "session/run.h"

namespace belljar::cli {
namespace {

enum class Use : uint8_t { kRun, kShell, kPlan, kProbe };

struct Launch {
  policy::FlagOverrides flags;
  std::optional<std::string> policy_file;
  std::string report_file;
  plan::Request request;
  bool json = false;
  bool help = false;
};

std::vector<Option> launch_options(Launch& launch, Use use) {
  const auto keep = [](std::optional<std::string>& field) {
    return [&field](std::string_view value) -> base::Status {
      field = std::string(value);
      return {};
    };
  };
  const auto append = [](std::vector<std::string>& list) {
    return [&list](std::string_view value) -> base::Status {
      list.emplace_back(value);
      return {};
    };
  };
  const auto text = [](std::string& field) {
    return [&field](std::string_view value) -> base::Status {
      field = std::string(value);
      return {};
    };
  };
  const auto turn_on = [](bool& field) {
    return [&field](std::string_view) -> base::Status {
      field = true;
      return {};
    };
  };
  policy::FlagOverrides& flags = launch.flags;
  std::vector<Option> out{
      {"--agent", "NAME", "the agent's preset: claude, codex, gemini or one of the policy", keep(flags.agent)},
      {"--policy", "FILE", "a policy, TOML or JSON", keep(launch.policy_file)},
      {"--mode", "MODE", "the tier: jail (bwrap, docker and none come later)", keep(flags.mode)},
      {"--net", "allow|deny", "deny (standard): only the allowed hosts; allow: the host's network", keep(flags.net)},
      {"--allow-host", "HOST", "one more host: example.com, *.example.com, db.test:5432", append(flags.allow_hosts)},
      {"--read", "PATH", "one more path to read", append(flags.read)},
      {"--write", "PATH", "one more path to write", append(flags.write)},
      {"--hide", "PATH", "a path to hide", append(flags.hide)},
      {"--env", "NAME[=VALUE]", "pass a variable, or set one", append(flags.env)},
      {"--git", "read|write", "what the agent may do to .git", keep(flags.git)},
      {"--timeout", "TIME", "end the command after so long: 90s, 30m, 2h", keep(flags.timeout)},
      {"--chdir", "FOLDER", "where the command starts, inside the guest", text(launch.request.chdir)},
  };
  if (use == Use::kRun || use == Use::kShell) {
    out.push_back({"--report", "FILE", "write the settlement there, as JSON", text(launch.report_file)});
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
          "  belljar run --timeout 30m --report end.json -- make test\n";
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

// With `head` the guest is begun while the plan is made.
base::Result<plan::Plan> plan_launch(const Launch& launch, session::HeadStart* head) {
  // Before any thread is there. An ordinary user cannot: the kernel's refusal then names the reason.
  if (::geteuid() == 0) BELLJAR_TRY(linux::leave_chroot());
  policy::FlagOverrides flags = launch.flags;
  // `belljar run -- claude` means that agent. A path may be a program of the work folder's that only has the name.
  if (!flags.agent && !launch.policy_file && !launch.request.command.empty()) {
    const std::string& word = launch.request.command.front();
    const policy::Agent* agent = word.find('/') == std::string::npos ? policy::find_agent_of_command(word) : nullptr;
    if (agent != nullptr) flags.agent = agent->name;
  }
  BELLJAR_ASSIGN(const policy::Policy policy, policy::load(launch.policy_file, flags));
  if (head != nullptr) *head = session::begin(policy);
  BELLJAR_ASSIGN(const session::Launcher launcher, session::current_launcher());
  BELLJAR_ASSIGN(const plan::Facts facts, session::gather_facts(policy, launch.request, launcher));
  return plan::make_plan(policy, facts, launch.request);
}

// The settlement goes where the person said and nowhere else: the file may lie in a folder that an agent could write,
// so no link is followed on the way, and it is opened before the agent is there.
base::Result<base::Fd> open_report(const std::string& path) {
  constexpr std::string_view kOperation = "open the report";
  const int flags = O_WRONLY | O_CREAT | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
  open_how how{};
  how.flags = static_cast<uint64_t>(flags);
  how.mode = 0600;
  how.resolve = RESOLVE_NO_SYMLINKS;
  base::Fd file(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  if (!file) {
    return base::system_error(kOperation, path, errno,
                              errno == ELOOP ? "a link is in the way; name the real path" : "");
  }
  struct stat found{};
  if (::fstat(file.get(), &found) != 0) return base::system_error(kOperation, path, errno);
  if (!S_ISREG(found.st_mode) || found.st_nlink != 1) {
    return base::refuse(kOperation, path, "it is not a regular file with one name, refusing", "name a new file");
  }
  if (::ftruncate(file.get(), 0) != 0) return base::system_error(kOperation, path, errno);
  return file;
}

void print_denials(const Context& context, const session::Settlement& settlement) {
  for (const egress::Denial& denial : settlement.denials) {
    std::string line = "belljar: refused " + base::escape(denial.host) + ":" + std::to_string(denial.port) + ": " +
                       std::string(egress::code_of(denial.reason));
    if (denial.count > 1) line += ", " + std::to_string(denial.count) + " times";
    if (!denial.remedy.empty()) line += " (to allow it: " + base::escape(denial.remedy) + ")";
    std::fprintf(context.err, "%s\n", line.c_str());
  }
}

void print_end(const Context& context, const session::Settlement& settlement, const plan::Plan& plan) {
  const std::string program = base::escape(plan.command.empty() ? "" : plan.command.front());
  switch (settlement.reason) {
    case session::EndReason::kNotFound:
      std::fprintf(context.err, "belljar: execute '%s': not found in the guest (see 'belljar plan')\n",
                   program.c_str());
      break;
    case session::EndReason::kNotExecutable:
      std::fprintf(context.err, "belljar: execute '%s': cannot be executed in the guest\n", program.c_str());
      break;
    case session::EndReason::kDeadline:
      std::fprintf(context.err, "belljar: run '%s': ended at its deadline\n", program.c_str());
      break;
    case session::EndReason::kFailed:
      std::fprintf(context.err, "belljar: run '%s': the guest's init ended without a word\n", program.c_str());
      break;
    default:
      break;
  }
  print_denials(context, settlement);
}

// The code of a launch that never came to execute the command.
int code_of_refusal(const base::Error& error) {
  if (error.operation != "find the command") return kFailed;
  return error.code == ENOENT ? 127 : error.code == EACCES ? 126 : kFailed;
}

// Says the error, in the settlement too when there is a file for it, and returns the exit code.
int settle_refusal(const Context& context, const base::Error& error, const plan::Plan& plan, const base::Fd& file) {
  session::Settlement settlement;
  settlement.exit_code = code_of_refusal(error);
  if (settlement.exit_code == 127) settlement.reason = session::EndReason::kNotFound;
  if (settlement.exit_code == 126) settlement.reason = session::EndReason::kNotExecutable;
  settlement.error = error.message();
  report(context, error);
  if (file) (void)base::write_all(file.get(), session::settlement_json(settlement, plan));
  return settlement.exit_code;
}

int launch_sealed(const Context& context, std::span<const std::string> arguments, Use use) {
  auto launch = parse_launch(arguments, use);
  if (!launch) return report(context, launch.error());
  if (launch->help) return print(context, help_text(use, *launch));
  base::Fd report_file;
  if (!launch->report_file.empty()) {
    auto opened = open_report(launch->report_file);
    if (!opened) return report(context, opened.error());
    report_file = std::move(*opened);
  }
  session::HeadStart head;
  const auto plan = plan_launch(*launch, &head);
  if (!plan) return settle_refusal(context, plan.error(), {}, report_file);
  for (const std::string& weakening : plan->weakenings) {
    std::fprintf(context.err, "belljar: weaker than it could be: %s\n", base::escape(weakening).c_str());
  }
  session::RunOptions options;
  options.guest_path = context.guest_path;
  options.closed = context.closed;
  const auto settlement = session::run(*plan, options, std::move(head));
  if (!settlement) return settle_refusal(context, settlement.error(), *plan, report_file);
  print_end(context, *settlement, *plan);
  if (report_file && !base::write_all(report_file.get(), session::settlement_json(*settlement, *plan))) {
    return report(context, base::system_error("write the report", launch->report_file, errno).error());
  }
  return settlement->exit_code;
}

}  // namespace

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
  const auto plan = plan_launch(*launch, nullptr);
  if (!plan) return report(context, plan.error());
  return print(context, launch->json ? plan::explain_json(*plan) : plan::explain_text(*plan));
}

int probe_command(const Context& context, std::span<const std::string> arguments) {
  auto launch = parse_launch(arguments, Use::kProbe);
  if (!launch) return report(context, launch.error());
  if (launch->help) return print(context, help_text(Use::kProbe, *launch));
  session::HeadStart head;
  const auto plan = plan_launch(*launch, &head);
  if (!plan) return report(context, plan.error());
  session::RunOptions options;
  options.guest_path = context.guest_path;
  options.closed = context.closed;
  options.release = false;
  const auto settlement = session::run(*plan, options, std::move(head));
  if (!settlement) return report(context, settlement.error());
  return print(context,
               launch->json ? session::settlement_json(*settlement, *plan) : evidence_text(settlement->evidence));
}

}  // namespace belljar::cli
