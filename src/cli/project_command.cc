#include "cli/project_command.h"

#include <vector>

#include "base/text.h"
#include "cli/policy_options.h"
#include "policy/load.h"
#include "policy/merge.h"
#include "policy/parse.h"
#include "session/facts.h"
#include "store/standing.h"

namespace belljar::cli {
namespace {

constexpr const char* kProjectHelp =
    "Usage: belljar project set [OPTION]... [FOLDER]\n"
    "       belljar project show [FOLDER]\n"
    "       belljar project unset [FOLDER]\n"
    "       belljar project ls\n"
    "The default policy of a folder (the current one) and those below it, for launches that say nothing else. It is\n"
    "kept in Belljar's own state, where no agent can edit it. A default replaces the one before.\n\n"
    "Examples:\n"
    "  belljar project set --agent claude --allow-host example.com\n"
    "  belljar project set --policy team.toml ~/src/api\n\n"
    "Options of set:\n";

struct ProjectOptions {
  policy::FlagOverrides flags;
  std::optional<std::string> policy_file;
  bool help = false;
  std::vector<std::string> words;
};

std::vector<Option> project_options(ProjectOptions& asked) {
  std::vector<Option> options = policy_options(asked.flags, asked.policy_file);
  options.push_back({"--help", "", "this page", turn_on(asked.help)});
  return options;
}

base::Result<std::string> state_folder() {
  BELLJAR_ASSIGN(const session::Launcher launcher, session::current_launcher());
  store::Places places = store::places_of(launcher.environment);
  if (!places.state.empty()) return std::move(places.state);
  return base::refuse("find the state folder", "", "neither HOME nor XDG_STATE_HOME is set", "set one of them");
}

// What the options say, as text that is stored. A file without `extends` stays as its author wrote it.
base::Result<std::string> policy_text(const ProjectOptions& asked) {
  std::vector<policy::PolicyLayer> layers;
  if (asked.policy_file) {
    BELLJAR_ASSIGN(layers, policy::read_layers(*asked.policy_file, policy::read_policy_file));
  }
  BELLJAR_ASSIGN(policy::PolicyLayer flags, policy::flags_layer(asked.flags));
  layers.push_back(std::move(flags));
  BELLJAR_ASSIGN(std::string text, policy::said_json(layers));
  // Judged now as every launch will judge it: over the built-in policy.
  BELLJAR_ASSIGN(policy::PolicyLayer stored, policy::parse_policy(text, "project default"));
  BELLJAR_TRY(policy::load({std::move(stored)}, std::nullopt, {}));
  return text;
}

base::Result<std::string> set(const ProjectOptions& asked, const std::string& folder) {
  BELLJAR_ASSIGN(store::FolderId id, store::identify(folder));
  BELLJAR_ASSIGN(std::string text, policy_text(asked));
  BELLJAR_ASSIGN(const std::string state, state_folder());
  BELLJAR_ASSIGN(const store::Store store, store::Store::open(state));
  BELLJAR_TRY(store.set_project({id.path, std::move(text)}));
  return std::string();
}

// `text` is a project's default, or empty.
base::Result<std::string> with_host(const std::string& text, const std::string& rule) {
  std::vector<policy::PolicyLayer> layers;
  if (!text.empty()) {
    BELLJAR_ASSIGN(policy::PolicyLayer old, policy::parse_policy(text, "project default"));
    layers.push_back(std::move(old));
  }
  policy::FlagOverrides more;
  more.allow_hosts = {rule};
  BELLJAR_ASSIGN(policy::PolicyLayer layer, policy::flags_layer(more));
  layers.push_back(std::move(layer));
  BELLJAR_ASSIGN(std::string out, policy::said_json(layers));
  BELLJAR_ASSIGN(policy::PolicyLayer stored, policy::parse_policy(out, "project default"));
  BELLJAR_TRY(policy::load({std::move(stored)}, std::nullopt, {}));
  return out;
}

base::Result<std::optional<store::Store>> existing_store() {
  BELLJAR_ASSIGN(const std::string state, state_folder());
  return store::Store::open_existing(state);
}

std::unexpected<base::Error> no_default(std::string_view operation, const std::string& folder) {
  return base::refuse(operation, folder, "it has no default policy", "see 'belljar project ls'");
}

base::Result<std::string> show(const ProjectOptions& /*asked*/, const std::string& folder) {
  BELLJAR_ASSIGN(const store::FolderId id, store::identify(folder));
  BELLJAR_ASSIGN(const auto store, existing_store());
  std::optional<store::Project> project;
  if (store) {
    BELLJAR_ASSIGN(project, store->project_of(id.path));
  }
  if (!project) return no_default("show the project", id.path);
  return project->policy;
}

base::Result<std::string> unset(const ProjectOptions& /*asked*/, const std::string& folder) {
  // A folder that is gone can still be forgotten.
  const auto id = store::identify(folder);
  const std::string& path = id ? id->path : folder;
  BELLJAR_ASSIGN(const std::string state, state_folder());
  BELLJAR_ASSIGN(const store::Store store, store::Store::open(state));
  BELLJAR_ASSIGN(const bool removed, store.remove_project(path));
  if (!removed) return no_default("unset the project", path);
  return std::string();
}

base::Result<std::string> list() {
  BELLJAR_ASSIGN(const auto store, existing_store());
  std::string out;
  if (!store) return out;
  BELLJAR_ASSIGN(const std::vector<store::Project> projects, store->projects());
  for (const store::Project& project : projects) out += base::escape(project.folder) + "\n";
  return out;
}

}  // namespace

std::string project_folder_of(const std::string& folder) {
  const auto state = state_folder();
  if (!state) return folder;
  const auto store = store::Store::open(*state);
  if (!store) return folder;
  const std::optional<store::Project> known = store->project_of(folder).value_or(std::nullopt);
  return known ? known->folder : folder;
}

base::Status allow_in_project(const std::string& folder, const std::string& rule) {
  BELLJAR_ASSIGN(const std::string state, state_folder());
  BELLJAR_ASSIGN(const store::Store store, store::Store::open(state));
  // A default of its own would hide that of a folder above.
  BELLJAR_ASSIGN(const std::optional<store::Project> known, store.project_of(folder));
  BELLJAR_ASSIGN(std::string text, with_host(known ? known->policy : "", rule));
  return store.set_project({known ? known->folder : folder, std::move(text)});
}

int project_command(const Context& context, std::span<const std::string> arguments) {
  ProjectOptions asked;
  const std::vector<Option> options = project_options(asked);
  const std::string word = arguments.empty() ? "" : arguments.front();
  const auto parsed = parse_options(arguments.subspan(arguments.empty() || word.starts_with('-') ? 0 : 1), options);
  if (!parsed) return report(context, parsed.error());
  if (asked.help) return print(context, kProjectHelp + options_help(options));
  struct Verb {
    std::string_view name;
    base::Result<std::string> (*run)(const ProjectOptions&, const std::string&);
  };
  constexpr Verb kVerbs[] = {{"set", set}, {"show", show}, {"unset", unset}};
  if (word == "ls" && parsed->empty()) {
    const auto text = list();
    return text ? print(context, *text) : report(context, text.error());
  }
  for (const Verb& verb : kVerbs) {
    if (word != verb.name || parsed->size() > 1) continue;
    const auto text = verb.run(asked, parsed->empty() ? "." : parsed->front());
    return text ? print(context, *text) : report(context, text.error());
  }
  return report(context,
                base::refuse("read the arguments", word, "expected set, show, unset or ls, and at most a folder",
                             "see 'belljar project --help'")
                    .error());
}

}  // namespace belljar::cli
