#include "cli/main.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "cli/audit_command.h"
#include "cli/completion.h"
#include "cli/doctor.h"
#include "cli/image_command.h"
#include "cli/launch.h"
#include "cli/policy_command.h"
#include "cli/project_command.h"
#include "cli/quarantine_command.h"
#include "cli/recover_command.h"
#include "cli/reload_command.h"
#include "cli/target_launch.h"
#include "cli/task_command.h"
#include "cli/trust_command.h"

#ifndef BELLJAR_VERSION
#error "the build says which version this is"
#endif

namespace belljar::cli {
namespace {

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(const Context&, std::span<const std::string>);
};

int completion_command(const Context& context, std::span<const std::string> arguments);

int doctor_command(const Context& context, std::span<const std::string> arguments) {
  return run_doctor(arguments, context.out, context.err);
}

constexpr std::array<Command, 16> kCommands{{
    {"run", "run a command sealed, in the current folder", run_command},
    {"shell", "the same with your shell", shell_command},
    {"plan", "print what run would do, and do nothing", plan_command},
    {"probe", "have a guest prove itself from the inside", probe_command},
    {"doctor", "what this host can do, each gap with its remedy", doctor_command},
    {"audit", "verify the file that --audit has written", audit_command},
    {"policy", "check, show, convert or import a policy file", policy_command},
    {"project", "the default policy of a folder", project_command},
    {"trust", "let a project's own .belljar.toml count", trust_command},
    {"target", "what is known of an ssh target", target_command},
    {"task", "unattended work on a clone in memory", task_command},
    {"reload", "other rules for a session that runs", reload_command},
    {"quarantine", "what was put away: list, restore, drop", quarantine_command},
    {"image", "build, list and remove images of agents", image_command},
    {"recover", "finish what killed sessions left", recover_command},
    {"completion", "a shell's completions, or the man page", completion_command},
}};

std::string help_page() {
  std::string out =
      "Usage: belljar COMMAND [OPTION]...\n"
      "Puts an AI coding agent under glass: it sees its work folder, its own login and nothing else; it reaches the "
      "hosts\nyou named and nothing else.\n\nCommands:\n";
  for (const Command& command : kCommands) {
    std::string name(command.name);
    name.resize(11, ' ');
    out.append("  ").append(name).append(command.summary).append("\n");
  }
  return out +
         "\nExamples:\n"
         "  belljar run --agent claude -- claude\n"
         "  belljar run --allow-host example.com -- curl https://example.com/\n"
         "  belljar plan --agent codex -- codex\n\n"
         "'belljar COMMAND --help' has more.\n";
}

std::vector<CommandWords> command_words() {
  std::vector<CommandWords> out;
  for (const auto& [name, summary, run] : kCommands) {
    CommandWords words{.name = name, .summary = summary};
    words.command_follows = name == "run" || name == "plan";
    if (words.command_follows || name == "shell" || name == "probe") words.options = options_of(name);
    if (name == "reload") words.options = reload_options_of();
    if (name == "policy") words.words = {"check", "show", "convert", "import"};
    if (name == "project") words.words = {"set", "show", "unset"};
    if (name == "target") words.words = {"check", "show"};
    if (name == "quarantine") words.words = {"ls", "restore", "drop"};
    if (name == "image") words.words = {"build", "ls", "rm"};
    if (name == "task") words.words = {"create", "run", "ls", "inspect", "export", "commit", "rm", "pool"};
    if (name == "completion") words.words = {"bash", "zsh", "fish", "man"};
    out.push_back(std::move(words));
  }
  return out;
}

int completion_command(const Context& context, std::span<const std::string> arguments) {
  constexpr const char* kUsage =
      "Usage: belljar completion bash|zsh|fish|man\nPrints that shell's completions to source, or the man page.\n\n"
      "Examples:\n  source <(belljar completion bash)\n  belljar completion man | man -l -\n";
  if (arguments.size() == 1) {
    if (arguments[0] == "--help") return print(context, kUsage);
    if (const auto text = completion_text(arguments[0], command_words())) return print(context, *text);
  }
  return report(context, base::refuse("read the arguments", arguments.empty() ? "" : arguments[0],
                                      "bash, zsh, fish or man is expected", "belljar completion bash")
                             .error());
}

int unknown_command(const Context& context, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) names.push_back(command.name);
  const std::string_view near = base::nearest(name, names);
  return report(context, base::refuse("read the arguments", name, "no such command",
                                      near.empty() ? "see 'belljar --help'" : "did you mean " + std::string(near) + "?")
                             .error());
}

}  // namespace

int run_main(const Context& context, std::span<const std::string> arguments) {
  if (arguments.empty()) {
    std::fputs(help_page().c_str(), context.err);
    return kFailed;
  }
  const std::string& first = arguments.front();
  if (first == "--help" || first == "-h" || first == "help") return print(context, help_page());
  if (first == "--version") return print(context, "belljar " BELLJAR_VERSION "\n");
  if (first == "remote-end") return remote_end_command(context, arguments.subspan(1));
  const auto command = std::ranges::find(kCommands, first, &Command::name);
  if (command == kCommands.end()) return unknown_command(context, first);
  return command->run(context, arguments.subspan(1));
}

}  // namespace belljar::cli
