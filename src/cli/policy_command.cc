#include "cli/policy_command.h"

#include <vector>

#include "cli/options.h"
#include "policy/load.h"

namespace belljar::cli {
namespace {

constexpr const char* kHelp =
    "Usage: belljar policy check FILE\n"
    "       belljar policy show [--json] FILE\n"
    "Reads a policy, TOML or JSON, with everything it extends. check says in a line what it permits; show prints it\n"
    "merged, with where each setting was said.\n\n"
    "Example:\n"
    "  belljar policy check agent.toml\n";

struct Asked {
  std::vector<std::string> words;
  bool json = false;
  bool help = false;
};

base::Result<Asked> parse(std::span<const std::string> arguments) {
  Asked asked;
  const auto turn_on = [](bool& field) {
    return [&field](std::string_view) -> base::Status {
      field = true;
      return {};
    };
  };
  const std::vector<Option> options{{"--json", "", "for programs", turn_on(asked.json)},
                                    {"--help", "", "this page", turn_on(asked.help)}};
  // The subcommand may stand before or behind the options.
  std::span<const std::string> rest = arguments;
  if (!rest.empty() && !rest.front().starts_with('-')) {
    asked.words.push_back(rest.front());
    rest = rest.subspan(1);
  }
  BELLJAR_ASSIGN(const std::vector<std::string> words, parse_options(rest, options));
  asked.words.insert(asked.words.end(), words.begin(), words.end());
  return asked;
}

}  // namespace

int policy_command(const Context& context, std::span<const std::string> arguments) {
  const auto asked = parse(arguments);
  if (!asked) return report(context, asked.error());
  if (asked->help) return print(context, kHelp);
  const std::vector<std::string>& words = asked->words;
  const bool check = !words.empty() && words[0] == "check";
  if (words.size() != 2 || (!check && words[0] != "show") || (check && asked->json)) {
    return report(context, base::refuse("read the arguments", words.empty() ? "" : words[0],
                                        "expected 'check FILE' or 'show [--json] FILE'", "see 'belljar policy --help'")
                               .error());
  }
  const auto text = check ? policy::check_text(words[1]) : policy::show_text(words[1], asked->json);
  return text ? print(context, *text) : report(context, text.error());
}

}  // namespace belljar::cli
