#include "cli/policy_command.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/text.h"
#include "cli/policy_options.h"
#include "policy/convert.h"
#include "policy/import.h"
#include "policy/load.h"
#include "policy/merge.h"
#include "policy/show.h"
#include "session/facts.h"
#include "store/standing.h"

namespace belljar::cli {
namespace {

constexpr const char* kPolicyHelp =
    "Usage: belljar policy check FILE\n"
    "       belljar policy show [--json] FILE\n"
    "       belljar policy show --explain [FILE]\n"
    "       belljar policy convert --to short|long FILE\n"
    "       belljar policy import claude|srt|codex FILE\n"
    "Reads a policy, TOML or JSON, with everything it extends. check says in a line what it permits; show prints it\n"
    "merged, with where each setting was said. --explain shows what a launch in this folder gets, and from whom. "
    "convert goes\n"
    "between the launch form {\"mode\", \"network\", \"docker_image\", \"allow_hosts\"} and a whole policy, and says "
    "what the\n"
    "short one cannot carry. import reads the sandbox settings of another tool, and says what became of each key.\n\n"
    "Examples:\n"
    "  belljar policy check agent.toml\n"
    "  belljar policy show --explain\n"
    "  belljar policy import srt ~/.srt-settings.json > agent.json\n";

struct PolicyOptions {
  std::vector<std::string> words;
  bool json = false;
  bool explain = false;
  std::string to;
  bool help = false;
};

base::Result<PolicyOptions> parse(std::span<const std::string> arguments) {
  PolicyOptions asked;
  const std::vector<Option> options{{"--json", "", "for programs", turn_on(asked.json)},
                                    {"--explain", "", "for the current folder", turn_on(asked.explain)},
                                    {"--to", "short|long", "the form to convert to", keep(asked.to)},
                                    {"--help", "", "this page", turn_on(asked.help)}};
  BELLJAR_ASSIGN(asked.words, parse_word_and_options(arguments, options));
  return asked;
}

// `belljar policy show --explain`: every place a policy can come from, lowest first, then the whole.
base::Result<std::string> explain(const std::optional<std::string>& file) {
  BELLJAR_ASSIGN(const session::Launcher launcher, session::current_launcher());
  BELLJAR_ASSIGN(store::Standing standing,
                 store::gather_standing(store::places_of(launcher.environment), launcher.folder));
  standing.sources.insert(standing.sources.begin(), {"built-in policy", "", "used"});
  if (file) standing.sources.push_back({"launch", *file, "used"});
  std::string out;
  for (const store::Source& source : standing.sources) {
    const std::string where = source.where.empty() ? "" : " " + base::escape(source.where);
    out += "# " + source.what + where + ": " + base::escape(source.state) + "\n";
  }
  BELLJAR_ASSIGN(const policy::Policy policy, policy::load(standing.layers, file, {}));
  return out + "\n" + policy::show(policy);
}

// Prints the result, and what a person should know beside it on the error stream.
int convert(const Context& context, const std::string& to, const std::string& file) {
  if (to == "long") {
    const auto layers = policy::read_layers(file, policy::read_policy_file);
    if (!layers) return report(context, layers.error());
    const auto text = policy::said_json(*layers);
    return text ? print(context, *text) : report(context, text.error());
  }
  const auto policy = policy::check(file);
  if (!policy) return report(context, policy.error());
  const policy::ShortForm form = policy::short_form(*policy);
  for (const std::string& setting : form.lost) {
    std::fprintf(context.err, "belljar: the short form cannot carry %s\n", base::escape(setting).c_str());
  }
  return print(context, form.json);
}

int import(const Context& context, const std::string& format, const std::string& file) {
  struct Known {
    std::string_view name;
    policy::ImportFormat format;
    std::string_view ending;
  };
  constexpr Known kKnown[] = {{"claude", policy::ImportFormat::kClaude, ".json"},
                              {"srt", policy::ImportFormat::kSrt, ".json"},
                              {"codex", policy::ImportFormat::kCodex, ".toml"}};
  const auto* const known = std::ranges::find(kKnown, format, &Known::name);
  if (known == std::end(kKnown)) {
    return report(context, base::refuse("import", format, "no such format", "one of claude, srt, codex").error());
  }
  const auto text = policy::read_policy_file(file, false);
  if (!text) return report(context, text.error());
  // The format of the tool counts, not the name its file happens to have.
  const std::string name = file.ends_with(known->ending) ? file : file + std::string(known->ending);
  const auto imported = policy::import_settings(known->format, *text, name);
  if (!imported) return report(context, imported.error());
  for (const policy::Imported& row : imported->rows) {
    std::fprintf(context.err, "%-14s %s: %s\n", std::string(policy::to_text(row.outcome)).c_str(),
                 base::escape(row.key).c_str(), base::escape(row.text).c_str());
  }
  const auto policy = policy::said_json(std::span(&imported->layer, 1));
  return policy ? print(context, *policy) : report(context, policy.error());
}

}  // namespace

int policy_command(const Context& context, std::span<const std::string> arguments) {
  const auto asked = parse(arguments);
  if (!asked) return report(context, asked.error());
  if (asked->help) return print(context, kPolicyHelp);
  const std::vector<std::string>& words = asked->words;
  if (asked->explain && !asked->json && !words.empty() && words[0] == "show" && words.size() <= 2) {
    const auto text = explain(words.size() == 2 ? std::optional(words[1]) : std::nullopt);
    return text ? print(context, *text) : report(context, text.error());
  }
  if (words.size() == 2 && words[0] == "convert" && (asked->to == "short" || asked->to == "long")) {
    return convert(context, asked->to, words[1]);
  }
  if (words.size() == 3 && words[0] == "import") return import(context, words[1], words[2]);
  const bool check = !words.empty() && words[0] == "check";
  if (words.size() != 2 || (!check && words[0] != "show") || (check && asked->json) || asked->explain) {
    return report(context,
                  base::refuse("read the arguments", words.empty() ? "" : words[0],
                               "expected check, show, convert or import with its words", "see 'belljar policy --help'")
                      .error());
  }
  const auto text = check ? policy::check_text(words[1]) : policy::show_text(words[1], asked->json);
  return text ? print(context, *text) : report(context, text.error());
}

}  // namespace belljar::cli
