#include "store/standing.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <iterator>
#include <utility>

#include "base/path.h"
#include "policy/load.h"
#include "policy/parse.h"

namespace belljar::store {
namespace {

bool exists(const std::string& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0;
}

void append(std::vector<policy::PolicyLayer>& to, std::vector<policy::PolicyLayer> from) {
  std::ranges::move(from, std::back_inserter(to));
}

base::Status add_user_default(const Places& places, Standing& out) {
  constexpr const char* kWhat = "user default";
  if (places.config.empty()) return {};
  for (const char* name : {"/policy.toml", "/policy.json"}) {
    const std::string path = places.config + name;
    if (!exists(path)) continue;
    BELLJAR_ASSIGN(std::vector<policy::PolicyLayer> layers, policy::read_layers(path, policy::read_policy_file));
    append(out.layers, std::move(layers));
    out.sources.push_back({kWhat, path, "used"});
    return {};
  }
  out.sources.push_back({kWhat, places.config + "/policy.toml", "not there"});
  return {};
}

base::Status add_project_default(const std::optional<Store>& store, const std::string& folder, Standing& out) {
  constexpr const char* kWhat = "project default";
  std::optional<Project> project;
  if (store) {
    BELLJAR_ASSIGN(project, store->project_of(folder));
  }
  if (!project) {
    out.sources.push_back({kWhat, folder, "none set ('belljar project set')"});
    return {};
  }
  BELLJAR_ASSIGN(policy::PolicyLayer layer, policy::parse_policy(project->policy, "project default"));
  out.layers.push_back(std::move(layer));
  out.sources.push_back({kWhat, project->folder, "used"});
  return {};
}

std::string why_not(Trust trust) {
  switch (trust) {
    case Trust::kTrusted:
      return {};
    case Trust::kNever:
      return "nobody has trusted it";
    case Trust::kOtherFolder:
      return "another folder stands there than the one that was trusted";
    case Trust::kOtherContent:
      return "it, or a file it extends, has changed since it was trusted";
  }
  return "it is not trusted";
}

base::Status add_project_file(const std::optional<Store>& store, const std::string& folder, Standing& out) {
  constexpr const char* kWhat = "project file";
  const std::string path = find_project_file(folder);
  if (path.empty()) {
    out.sources.push_back({kWhat, folder + "/" + kProjectFile, "not there"});
    return {};
  }
  std::string reason = why_not(Trust::kNever);
  auto file = read_project_file(path);
  if (!file) {
    // Whoever can write there must not be able to stop launches, nor to have a part of the file believed.
    reason = file.error().message();
  } else if (store) {
    BELLJAR_ASSIGN(const Trust trust, store->judge(file->folder, file->files));
    reason = why_not(trust);
  }
  if (reason.empty()) {
    append(out.layers, std::move(file->layers));
    out.sources.push_back({kWhat, path, "used: trusted"});
    return {};
  }
  out.sources.push_back({kWhat, path, "not used: " + reason});
  out.notes.push_back("'" + path + "' is not used: " + reason + " (to read and trust it: belljar trust)");
  return {};
}

base::Result<std::optional<Store>> existing_store(const Places& places) {
  if (places.state.empty()) return std::nullopt;
  return Store::open_existing(places.state);
}

}  // namespace

Places places_of(const std::map<std::string, std::string, std::less<>>& environment) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : base::normal_path(found->second);
  };
  const std::string home = value("HOME");
  const auto place = [&](const char* variable, const char* usual) {
    std::string base = value(variable);
    if (base.empty() && !home.empty()) base = (home == "/" ? "" : home) + usual;
    return base.empty() ? base : (base == "/" ? "" : base) + "/belljar";
  };
  return {place("XDG_STATE_HOME", "/.local/state"), place("XDG_CONFIG_HOME", "/.config")};
}

std::string find_project_file(const std::string& folder) {
  for (std::string at = folder;; at = base::parent_of(at)) {
    std::string path = (at == "/" ? "" : at) + "/" + kProjectFile;
    if (exists(path)) return path;
    if (at == "/" || at.empty()) return {};
  }
}

base::Result<ProjectFile> read_project_file(const std::string& path) {
  ProjectFile out;
  BELLJAR_ASSIGN(out.folder, identify(base::parent_of(path)));
  // As a file that a policy names: no link, since whoever can write there could make it quote any file.
  const auto reader = [&](const std::string& file, bool) -> base::Result<std::string> {
    BELLJAR_ASSIGN(std::string text, policy::read_policy_file(file, true));
    out.files.push_back({file, text});
    return text;
  };
  BELLJAR_ASSIGN(out.layers, policy::read_layers(path, reader));
  return out;
}

base::Result<Standing> gather_defaults(const Places& places, const std::string& folder) {
  Standing out;
  BELLJAR_TRY(add_user_default(places, out));
  BELLJAR_ASSIGN(const std::optional<Store> store, existing_store(places));
  BELLJAR_TRY(add_project_default(store, folder, out));
  return out;
}

base::Result<Standing> gather_standing(const Places& places, const std::string& folder) {
  Standing out;
  BELLJAR_TRY(add_user_default(places, out));
  BELLJAR_ASSIGN(const std::optional<Store> store, existing_store(places));
  BELLJAR_TRY(add_project_default(store, folder, out));
  BELLJAR_TRY(add_project_file(store, folder, out));
  return out;
}

}  // namespace belljar::store
