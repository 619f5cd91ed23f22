#include "cli/task_run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/io.h"
#include "base/text.h"
#include "cli/image_builds.h"
#include "cli/launch_end.h"
#include "cli/options.h"
#include "cli/policy_options.h"
#include "cli/recover_command.h"
#include "cli/tasks.h"
#include "policy/values.h"
#include "session/state_folder.h"
#include "session/task.h"
#include "store/store.h"
#include "tiers/docker/image/registered.h"

namespace belljar::cli {
namespace {

namespace docker = tiers::docker;
namespace task = tiers::docker::task;

constexpr uint64_t kEngineSeconds = 20;
constexpr uint64_t kStandardSeconds = 3600;

struct TaskRunOptions {
  std::string task;
  std::string phase;
  std::string agent;
  std::string prompt;
  std::string model;
  std::string schema;
  std::string certificates;
  std::string login;
  std::string token;
  std::string deadline;
  std::string attempt;
  std::string image;
  std::string report_file;
  task::Ceilings ceilings;
  bool help = false;
  std::vector<std::string> command;
};

// Whether it is within its bounds, the capture says.
Option option_of(const task::Bound& bound, task::Ceilings& ceilings) {
  static constexpr std::array kValues = {"SIZE", "PERCENT", "COUNT"};
  const auto parse = [unit = bound.unit](std::string_view text) -> policy::Verdict<uint64_t> {
    if (unit == task::Unit::kBytes) return policy::parse_size(text);
    if (unit == task::Unit::kPercent) return policy::parse_percent(text);
    uint64_t count = 0;
    if (!base::parse_uint(text, count)) return policy::no("it is no number");
    return count;
  };
  return {bound.name, kValues.at(static_cast<size_t>(bound.unit)), bound.what,
          [&bound, &ceilings, parse](std::string_view text) -> base::Status {
            const auto value = parse(text);
            if (!value) return base::refuse("read the option", bound.name, value.error().reason, value.error().hint);
            ceilings.*bound.field = *value;
            return {};
          }};
}

std::vector<Option> options_of(TaskRunOptions& asked) {
  std::vector<Option> out = {
      {"--phase", "PHASE", "plan, questions or review: the work is read-only; execute or fix: it is not",
       keep(asked.phase)},
      {"--agent", "NAME", "claude or codex, started as the phase wants it", keep(asked.agent)},
      {"--prompt", "TEXT", "what the agent is to do", keep(asked.prompt)},
      {"--model", "NAME", "as the agent calls it; standard: its own choice", keep(asked.model)},
      {"--schema", "FILE", "JSON schema that the agent's answer follows", keep(asked.schema)},
      {"--certificates", "FILE", "PEM file of the authorities that it trusts, in place of the image's",
       keep(asked.certificates)},
      {"--credential-file", "FILE", "the agent's login, read once; what is renewed of it in there is lost",
       keep(asked.login)},
      {"--token-env", "NAME", "or this variable of yours, one of the agent's vendor's", keep(asked.token)},
      {"--deadline", "TIME", "from now; nothing of it runs any longer (standard: 1h)", keep(asked.deadline)},
      {"--attempt", "ID", "a name for this attempt, which can never be used again", keep(asked.attempt)},
      {"--image", "IMAGE", "another that belljar image build has made (standard: the task's own)", keep(asked.image)},
      {"--report", "FILE", "write the settlement there, as JSON", keep(asked.report_file)},
  };
  for (const task::Bound& bound : task::bounds()) out.push_back(option_of(bound, asked.ceilings));
  out.push_back({"--help", "", "this page", turn_on(asked.help)});
  return out;
}

base::Result<TaskRunOptions> parse(std::span<const std::string> arguments) {
  TaskRunOptions out;
  if (!arguments.empty() && !arguments.front().starts_with('-')) {
    out.task = arguments.front();
    arguments = arguments.subspan(1);
  }
  BELLJAR_ASSIGN(out.command, parse_options(arguments, options_of(out)));
  return out;
}

base::Status check(const TaskRunOptions& asked) {
  constexpr std::string_view kOperation = "read the arguments";
  if (asked.task.empty()) return base::refuse(kOperation, "", "no task is named", "belljar task run TASK --phase plan");
  if (asked.agent.empty() == asked.command.empty()) {
    return base::refuse(kOperation, asked.agent, "either an agent with a prompt or a command is expected",
                        "--agent claude --prompt TEXT, or -- COMMAND");
  }
  if (asked.agent.empty() ? !asked.prompt.empty() : asked.prompt.empty()) {
    return base::refuse(kOperation, "--prompt", "it goes with --agent, and --agent with it");
  }
  if (!asked.login.empty() && !asked.token.empty()) {
    return base::refuse(kOperation, "--token-env",
                        "one credential is enough: it is not for use with --credential-file");
  }
  if (asked.agent.empty() && (!asked.login.empty() || !asked.token.empty())) {
    return base::refuse(kOperation, asked.login.empty() ? "--token-env" : "--credential-file",
                        "a credential goes to an agent of its vendor's, refusing", "name it: --agent claude");
  }
  return {};
}

// What the request asks for, and what it is carried out with.
struct Captured {
  task::Invocation invocation;
  docker::Image image;
  session::TaskInputs inputs;
};

task::Ledger ledger_of(const std::shared_ptr<store::Store>& store) {
  return {[store](const std::string& attempt, const std::string& request) {
            return store->claim_attempt(attempt, request);
          },
          [store](const std::string& attempt) -> base::Result<std::string> {
            BELLJAR_ASSIGN(auto kept, store->attempt(attempt));
            return std::move(kept).value_or("");
          }};
}

base::Result<task::Credential> credential_of(const TaskRunOptions& asked, const task::Adapter& adapter) {
  if (!asked.login.empty()) return task::Credential::from_file(adapter, asked.login);
  if (asked.token.empty()) return task::Credential();
  const char* value = task::is_token(asked.token) ? std::getenv(asked.token.c_str()) : nullptr;
  return task::Credential::from_token(adapter, asked.token, value != nullptr ? value : "");
}

base::Status seal_input(std::string_view operation, const std::string& path, std::string& text,
                        std::optional<task::SealedInput>& sealed) {
  if (path.empty()) return {};
  BELLJAR_ASSIGN(text, task::read_once(operation, path, task::SealedInput::kMost));
  BELLJAR_ASSIGN(sealed, task::SealedInput::seal(path, text));
  return {};
}

base::Status add_inputs(const TaskRunOptions& asked, task::Request& request, session::TaskInputs& inputs) {
  BELLJAR_TRY(seal_input("read the schema", asked.schema, request.schema, inputs.schema));
  BELLJAR_TRY(seal_input("read the certificates", asked.certificates, request.certificates, inputs.certificates));
  if (asked.agent.empty()) return {};
  const task::Adapter* adapter = task::find_adapter(asked.agent);
  if (adapter == nullptr) return {};  // capture() says so
  request.token = asked.token;
  request.login = !asked.login.empty();
  BELLJAR_ASSIGN(inputs.credential, credential_of(asked, *adapter));
  request.command = task::command_of(*adapter, {.phase = request.phase,
                                                .prompt = asked.prompt,
                                                .model = asked.model,
                                                .schema = asked.schema.empty() ? "" : task::kSchema,
                                                .schema_text = request.schema});
  return {};
}

task::Volumes volumes_of(const docker::storage::TaskStorage& storage) {
  const auto mount = [](const docker::storage::Volume& one) {
    return docker::VolumeMount{
        .name = one.name, .target = {}, .source = one.mountpoint, .bytes = one.bytes, .files = one.files};
  };
  return {mount(storage.work), mount(storage.git)};
}

// From the capture to the deadline.
base::Result<uint64_t> seconds_of(const TaskRunOptions& asked) {
  if (asked.deadline.empty()) return kStandardSeconds;
  const auto seconds = policy::parse_duration(asked.deadline);
  if (!seconds) return base::refuse("read the option", "--deadline", seconds.error().reason, seconds.error().hint);
  return *seconds;
}

base::Result<Captured> capture(const TaskRunOptions& asked, uint64_t seconds, const LockedTask& found,
                               const docker::Engine& engine, const base::Deadline& deadline) {
  task::Request request;
  request.attempt = asked.attempt.empty() ? session::new_session_id() : asked.attempt;
  request.task = found.task.id;
  const auto phase = task::phase_of(asked.phase);
  if (!phase) {
    return base::refuse("read the option", "--phase", "plan, questions, review, execute or fix is expected");
  }
  request.phase = *phase;
  request.agent = asked.agent;
  request.command = asked.command;
  request.seconds = seconds;
  request.ceilings = asked.ceilings;
  session::TaskInputs inputs;
  BELLJAR_ASSIGN(const docker::storage::TaskStorage storage, Tasks::storage_of(found.task, engine, deadline));
  inputs.volumes = volumes_of(storage);
  BELLJAR_ASSIGN(const std::string state, own_state_folder());
  BELLJAR_ASSIGN(const docker::image::Registry registry, registry_of(state));
  BELLJAR_ASSIGN(const auto image,
                 docker::image::require_registered(registry, engine,
                                                   asked.image.empty() ? storage.image_id : asked.image, deadline));
  request.image_id = image.id();
  BELLJAR_TRY(add_inputs(asked, request, inputs));
  BELLJAR_ASSIGN(store::Store store, store::Store::open(state));
  BELLJAR_ASSIGN(
      task::Invocation invocation,
      task::Invocation::capture(std::move(request), ledger_of(std::make_shared<store::Store>(std::move(store)))));
  return Captured{std::move(invocation), image.image(), std::move(inputs)};
}

// `held` from when the container may be there.
base::Result<session::Settlement> carry_out(const Context& context, const TaskRunOptions& asked, plan::Plan& plan,
                                            std::optional<session::SignalsHeld>& held) {
  BELLJAR_TRY(check(asked));
  BELLJAR_ASSIGN(const uint64_t seconds, seconds_of(asked));
  const auto deadline = base::Deadline::after(std::chrono::seconds(std::clamp(seconds, uint64_t{1}, kEngineSeconds)));
  BELLJAR_ASSIGN(const Tasks tasks, Tasks::open());
  // Nobody else removes, reads or runs it until this is over.
  BELLJAR_ASSIGN(const LockedTask found, tasks.find(asked.task));
  BELLJAR_ASSIGN(const docker::Engine engine, docker::Engine::open(found.task.engine, deadline));
  BELLJAR_ASSIGN(Captured captured, capture(asked, seconds, found, engine, deadline));
  session::RunOptions options;
  options.guest_path = context.guest_path;
  options.closed = context.closed;
  options.state_folder = session::state_path();
  held.emplace();
  return session::run_task(captured.invocation, engine, captured.image, std::move(captured.inputs), std::move(options),
                           plan);
}

}  // namespace

int task_run_command(const Context& context, std::span<const std::string> arguments) {
  const auto asked = parse(arguments);
  if (!asked) return report(context, asked.error());
  if (asked->help) {
    TaskRunOptions help;
    return print(
        context,
        "Usage: belljar task run TASK --phase PHASE [OPTION]... [-- COMMAND [ARGUMENT]...]\n"
        "Runs one phase of TASK unattended, in a container of its own.\n\nExamples:\n"
        "  belljar task run TASK --phase plan --agent claude --token-env ANTHROPIC_API_KEY --prompt 'plan it'\n"
        "  belljar task run TASK --phase execute --deadline 30m -- make test\n\nOptions:\n" +
            options_help(options_of(help)));
  }
  const auto report_file = open_report(asked->report_file);
  if (!report_file) return report(context, report_file.error());
  recover_before_launch(context, "/dev/null");  // no work folder of the host
  plan::Plan plan;
  std::optional<session::SignalsHeld> held;
  const auto settlement = carry_out(context, *asked, plan, held);
  return tell_end(context, settlement, plan, *report_file, held);
}

}  // namespace belljar::cli
