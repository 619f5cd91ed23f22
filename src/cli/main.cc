#include "cli/main.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "cli/doctor.h"
#include "cli/launch.h"
#include "cli/policy_command.h"

#ifndef BELLJAR_VERSION
#error "the build says which version this is"
#endif

namespace belljar::cli {
namespace {

constexpr const char* kHelp =
    "Usage: belljar COMMAND [OPTION]...\n"
    "Puts an AI coding agent under glass: it sees its work folder, its own login and nothing else; it reaches the "
    "hosts\n"
    "you named and nothing else.\n\n"
    "Commands:\n"
    "  run     run a command sealed, in the current folder\n"
    "  shell   the same with your shell\n"
    "  plan    print what run would do, and do nothing\n"
    "  probe   have a guest prove itself from the inside\n"
    "  doctor  what this host can do, each gap with its remedy\n"
    "  policy  check or show a policy file\n\n"
    "Examples:\n"
    "  belljar run --agent claude -- claude\n"
    "  belljar run --allow-host example.com -- curl https://example.com/\n"
    "  belljar plan --agent codex -- codex\n\n"
    "'belljar COMMAND --help' has more.\n";

struct Command {
  std::string_view name;
  int (*run)(const Context&, std::span<const std::string>);
};

int doctor_command(const Context& context, std::span<const std::string> arguments) {
  return run_doctor(arguments, context.out, context.err);
}

constexpr std::array<Command, 6> kCommands{{{"run", run_command},
                                            {"shell", shell_command},
                                            {"plan", plan_command},
                                            {"probe", probe_command},
                                            {"doctor", doctor_command},
                                            {"policy", policy_command}}};

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
    std::fputs(kHelp, context.err);
    return kFailed;
  }
  const std::string& first = arguments.front();
  if (first == "--help" || first == "-h" || first == "help") return print(context, kHelp);
  if (first == "--version") return print(context, "belljar " BELLJAR_VERSION "\n");
  const auto command = std::ranges::find(kCommands, first, &Command::name);
  if (command == kCommands.end()) return unknown_command(context, first);
  return command->run(context, arguments.subspan(1));
}

}  // namespace belljar::cli
