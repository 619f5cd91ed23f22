#include "cli/trust_command.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/text.h"
#include "cli/policy_options.h"
#include "policy/merge.h"
#include "policy/show.h"
#include "session/facts.h"
#include "store/standing.h"

namespace belljar::cli {
namespace {

constexpr const char* kTrustHelp =
    "Usage: belljar trust [--yes] [FOLDER]\n"
    "       belljar trust --remove [FOLDER]\n"
    "       belljar trust --list\n"
    "Shows what the project's .belljar.toml changes, with all that it extends, asks, and remembers these very bytes "
    "for\n"
    "this very folder. When one of them changes the file counts no more: an agent can edit it.\n\n";

struct TrustOptions {
  bool yes = false;
  bool remove = false;
  bool list = false;
  bool help = false;
};

std::vector<Option> trust_options(TrustOptions& asked) {
  return {{"--yes", "", "do not ask", turn_on(asked.yes)},
          {"--remove", "", "trust it no more", turn_on(asked.remove)},
          {"--list", "", "the folders whose file is trusted", turn_on(asked.list)},
          {"--help", "", "this page", turn_on(asked.help)}};
}

// What can only take away from what a launch may do; everything else that is said may give.
bool only_narrows(std::string_view setting) {
  constexpr std::string_view kNarrowing[] = {"files.hide = ", "isolation.deny_hosts = ", "isolation.network = \"deny\"",
                                             "git = \"read\"", "files.home = \"empty\""};
  return std::ranges::any_of(kNarrowing, [&](std::string_view start) { return setting.starts_with(start); });
}

std::vector<std::string> only_in(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  std::vector<std::string> out;
  std::ranges::copy_if(one, std::back_inserter(out),
                       [&](const std::string& line) { return std::ranges::find(other, line) == other.end(); });
  return out;
}

// The difference the file makes over what holds without it.
base::Result<std::string> changes_text(const store::ProjectFile& file, const store::Standing& standing) {
  std::vector<policy::PolicyLayer> layers{policy::built_in_layer()};
  layers.insert(layers.end(), standing.layers.begin(), standing.layers.end());
  BELLJAR_ASSIGN(const policy::Policy without, policy::merge(layers));
  layers.insert(layers.end(), file.layers.begin(), file.layers.end());
  BELLJAR_ASSIGN(const policy::Policy with, policy::merge(layers));
  const std::vector<std::string> before = policy::settings_of(without);
  const std::vector<std::string> after = policy::settings_of(with);
  std::string out;
  for (const store::PolicyFile& read : file.files) out += "reads    " + base::escape(read.path) + "\n";
  for (const std::string& line : only_in(after, before)) {
    out += (only_narrows(line) ? "narrows  " : "WIDENS   ") + base::escape(line) + "\n";
  }
  for (const std::string& line : only_in(before, after)) out += "replaces " + base::escape(line) + "\n";
  if (before == after) out += "changes nothing\n";
  return out;
}

bool agreed(const Context& context) {
  std::fputs("Trust this file as it is now? [y/N] ", context.err);
  std::fflush(context.err);
  std::string answer;
  char byte = 0;
  while (answer.size() < 16 && ::read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n') answer += byte;
  return answer == "y" || answer == "yes" || answer == "Y";
}

base::Result<int> trust(const Context& context, const TrustOptions& asked, const store::Places& places,
                        const std::string& folder) {
  BELLJAR_ASSIGN(const store::FolderId id, store::identify(folder));
  const std::string path = store::find_project_file(id.path);
  if (path.empty()) {
    return base::refuse("trust", id.path, std::string("there is no ") + store::kProjectFile + " in it or above it");
  }
  // Shown and remembered is what was read here, whatever happens to the file meanwhile.
  BELLJAR_ASSIGN(const store::ProjectFile file, store::read_project_file(path));
  BELLJAR_ASSIGN(const store::Standing standing, store::gather_defaults(places, file.folder.path));
  BELLJAR_ASSIGN(const std::string changes, changes_text(file, standing));
  if (print(context, changes) != 0) return kFailed;
  std::fflush(context.out);
  if (!asked.yes) {
    if (::isatty(STDIN_FILENO) != 1) {
      return base::refuse("trust", path, "nobody can be asked", "read the lines above and add --yes");
    }
    if (!agreed(context)) return 1;
  }
  BELLJAR_ASSIGN(const store::Store store, store::Store::open(places.state));
  BELLJAR_TRY(store.trust(file.folder, file.files));
  return 0;
}

base::Result<int> remove(const store::Places& places, const std::string& folder) {
  const auto id = store::identify(folder);
  std::string path = id ? id->path : folder;
  if (id) {
    const std::string file = store::find_project_file(path);
    if (!file.empty()) path = file.substr(0, file.rfind('/'));
  }
  BELLJAR_ASSIGN(const store::Store store, store::Store::open(places.state));
  BELLJAR_ASSIGN(const bool removed, store.distrust(path.empty() ? "/" : path));
  if (!removed) return base::refuse("remove the trust", path, "there was none", "see 'belljar trust --list'");
  return 0;
}

base::Result<int> list(const Context& context, const store::Places& places) {
  BELLJAR_ASSIGN(const auto store, store::Store::open_existing(places.state));
  std::string out;
  if (store) {
    BELLJAR_ASSIGN(const std::vector<std::string> folders, store->trusted_folders());
    for (const std::string& folder : folders) out += base::escape(folder) + "\n";
  }
  return print(context, out);
}

base::Result<int> carry_out(const Context& context, const TrustOptions& asked, const std::string& folder) {
  BELLJAR_ASSIGN(const session::Launcher launcher, session::current_launcher());
  const store::Places places = store::places_of(launcher.environment);
  if (places.state.empty()) {
    return base::refuse("find the state folder", "", "neither HOME nor XDG_STATE_HOME is set", "set one of them");
  }
  if (asked.list) return list(context, places);
  return asked.remove ? remove(places, folder) : trust(context, asked, places, folder);
}

}  // namespace

int trust_command(const Context& context, std::span<const std::string> arguments) {
  TrustOptions asked;
  const std::vector<Option> options = trust_options(asked);
  const auto words = parse_options(arguments, options);
  if (!words) return report(context, words.error());
  if (asked.help) return print(context, kTrustHelp + options_help(options));
  if (words->size() > 1) {
    return report(context, base::refuse("read the arguments", words->back(), "one folder at a time").error());
  }
  const auto code = carry_out(context, asked, words->empty() ? "." : words->front());
  return code ? *code : report(context, code.error());
}

}  // namespace belljar::cli
