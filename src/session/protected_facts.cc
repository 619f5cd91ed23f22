#include "session/protected_facts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "plan/git_identity.h"
#include "plan/identity.h"
#include "policy/preset.h"
#include "session/obeyed_paths.h"
#include "session/special_facts.h"
#include "workspace/protected.h"

namespace belljar::session {
namespace {

using plan::ProtectedPath;

constexpr size_t kMostConfig = 4U << 20U;
constexpr size_t kMostKeptConfig = 64U << 10U;
constexpr size_t kMostHooks = 1000;
constexpr size_t kMostConfigs = 3000;
constexpr size_t kMostAround = 20'000;
constexpr size_t kDepthAround = 2;

ProtectedPath::Kind kind_of(workspace::EntryKind kind) {
  switch (kind) {
    case workspace::EntryKind::kFolder:
      return ProtectedPath::Kind::kFolder;
    case workspace::EntryKind::kFile:
      return ProtectedPath::Kind::kFile;
    case workspace::EntryKind::kLink:
      return ProtectedPath::Kind::kLink;
    case workspace::EntryKind::kOther:
      break;
  }
  return ProtectedPath::Kind::kOther;
}

void treat(const workspace::Known& known, ProtectedPath& out) {
  using Treatment = ProtectedPath::Treatment;
  switch (known.name) {
    case workspace::NameKind::kGit:
      out.reason = known.repository ? "a repository by its shape" : "a repository";
      break;
    case workspace::NameKind::kRepository:
      out.reason = "a repository, whose configuration names programs";
      break;
    case workspace::NameKind::kFolder:
      out.treatment = Treatment::kPrivate;
      out.reason = "settings that programs obey";
      break;
    case workspace::NameKind::kQuarantine:
      out.treatment = Treatment::kMask;
      out.reason = "put away at the end of a session";
      break;
    default:
      out.treatment = known.kind == workspace::EntryKind::kFolder ? Treatment::kPrivate : Treatment::kReadOnly;
      out.reason = "a file that programs obey";
  }
}

void identify(const workspace::FileId& id, auto& out) {
  out.device = id.device;
  out.inode = id.inode;
  out.born = id.born;
}

class Gatherer {
 public:
  Gatherer(const policy::Policy& policy, plan::Facts& facts, Walker& walker)
      : policy_(policy), facts_(facts), walker_(walker), obeyed_(policy, facts, walker) {}

  base::Status run() {
    const std::vector<std::string> others = written_trees();
    std::vector<std::string> trees = others;
    trees.push_back(facts_.work_folder);
    obeyed_.set_trees(std::move(trees));
    BELLJAR_TRY(look_through(facts_.work_folder, policy_.files.approve));
    for (const std::string& tree : others) BELLJAR_TRY(look_through(tree, {}));
    for (const std::string& folder : settings_) obeyed_.follow_links_in(folder);
    look_into_repository_elsewhere();
    follow_policy();
    follow_settings_around();
    follow_repositories();
    obeyed_.keep_other_names();
    leave_out_what_lies_in_repositories();
    for (std::vector<std::string>* list : {&facts_.watched, &facts_.held, &facts_.obeyed_whole}) {
      std::ranges::sort(*list);
      const auto repeated = std::ranges::unique(*list);
      list->erase(repeated.begin(), repeated.end());
    }
    return obeyed_.status();
  }

 private:
  base::Status look_through(const std::string& tree, const std::vector<std::string>& approved) {
    // NFS, with root squashed.
    if (facts_.root && ::faccessat(AT_FDCWD, tree.c_str(), W_OK, AT_EACCESS) != 0 && errno == EACCES) {
      obeyed_.refuse(tree, "root may not write there, and could not put away what the agent leaves",
                     "start belljar as the folder's owner");
    }
    BELLJAR_ASSIGN(const base::Fd root, base::open_resolved(AT_FDCWD, tree, O_PATH | O_DIRECTORY,
                                                            RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
    BELLJAR_ASSIGN(workspace::Protected found, workspace::find_protected(root.get(), approved));
    for (const workspace::Known& known : found.known) {
      // A tree around the work folder: what lies in there was found already.
      const std::string path = known.path.empty() ? tree : tree + "/" + known.path;
      if (tree == facts_.work_folder || !base::is_within(path, facts_.work_folder)) add(known, path);
    }
    // The guest could open it again.
    for (const workspace::Known& known : found.shut) {
      ProtectedPath path{.path = tree + "/" + known.path,
                         .kind = ProtectedPath::Kind::kFolder,
                         .treatment = ProtectedPath::Treatment::kMask,
                         .shut = true,
                         .reason = "its owner has shut it: nobody can tell what is in it"};
      if (path.path.size() >= PATH_MAX) {
        const std::string top = tree + "/" + known.path.substr(0, known.path.find('/'));
        obeyed_.refuse(top, "a folder in it is shut, and lies too deep to be hidden",
                       "remove it, or open all in it (chmod -R u+rwX)");
        continue;
      }
      identify(known.id, path);
      facts_.protected_paths.push_back(std::move(path));
    }
    for (std::string& path : found.unseen) {
      facts_.unseen_folders.push_back(tree == facts_.work_folder ? std::move(path) : tree + "/" + path);
    }
    for (const workspace::Special& each : found.special) {
      facts_.special_files.push_back({tree + "/" + each.path, each.socket});
    }
    return {};
  }

  // What the policy lets the guest write outside of the work folder: folders, none within another. One that cannot be
  // had is refused by the plan.
  std::vector<std::string> written_trees() {
    std::vector<std::string> all;
    for (const std::string& text : policy_.files.write) {
      const auto path = plan::expand_path(text, facts_.home, facts_.work_folder);
      if (!path) continue;
      const plan::PathFact fact = walker_.walk(*path);
      const bool folder = fact.kind == plan::FileKind::kFolder && is_to_be_looked_through(fact.real, facts_);
      if (folder && !base::is_within(fact.real, facts_.work_folder)) all.push_back(fact.real);
    }
    std::ranges::sort(all);
    std::vector<std::string> out;
    for (std::string& path : all) {
      if (out.empty() || !base::is_within(path, out.back())) out.push_back(std::move(path));
    }
    return out;
  }

  void add(const workspace::Known& known, const std::string& at) {
    ProtectedPath path;
    path.path = at;
    path.kind = kind_of(known.kind);
    path.repository = known.name == workspace::NameKind::kGit;
    identify(known.id, path);
    treat(known, path);
    if (path.kind == ProtectedPath::Kind::kLink) obeyed_.follow(path.path, path.treatment);
    if (path.kind == ProtectedPath::Kind::kFile) obeyed_.note_names(path.path, path.treatment);
    if (path.treatment == ProtectedPath::Treatment::kPrivate) settings_.push_back(walker_.walk(path.path).real);
    if (known.name == workspace::NameKind::kRepository && path.kind == ProtectedPath::Kind::kFolder) {
      obeyed_.follow_links_around(walker_.walk(path.path).real, kDepthAround);
    }
    if (path.repository && path.kind == ProtectedPath::Kind::kFolder) look_into_git(path);
    if (path.repository) add_repository(path);
    facts_.protected_paths.push_back(std::move(path));
  }

  // A repository that the guest may not write is protected as a whole, and its own git changes what is in it.
  void leave_out_what_lies_in_repositories() {
    const auto writable = [&](const std::string& path) {
      return std::ranges::any_of(facts_.git_folders,
                                 [&](const plan::GitFolder& folder) { return folder.path == path; });
    };
    std::vector<std::string> whole;
    for (const ProtectedPath& path : facts_.protected_paths) {
      if (path.repository && path.kind == ProtectedPath::Kind::kFolder && !writable(path.path)) {
        whole.push_back(path.path);
      }
    }
    const auto in_one = [&](const std::string& path) {
      return std::ranges::any_of(
          whole, [&](const std::string& folder) { return path != folder && base::is_within(path, folder); });
    };
    std::erase_if(facts_.protected_paths, [&](const ProtectedPath& path) {
      return path.treatment != ProtectedPath::Treatment::kMask && in_one(path.path);
    });
    std::erase_if(facts_.watched, in_one);
  }

  // One in the tree, whose own configuration counts in the folder that it belongs to.
  void add_repository(const ProtectedPath& git) {
    const bool named = workspace::protected_name(base::name_of(git.path)) == workspace::NameKind::kGit;
    const std::string top = named ? base::parent_of(git.path) : git.path;
    if (git.kind == ProtectedPath::Kind::kFolder) {
      repositories_.push_back({top, {git.path}});
    } else if (git.kind == ProtectedPath::Kind::kLink) {
      repositories_.push_back({top, {walker_.walk(git.path).real}});
    } else if (git.kind == ProtectedPath::Kind::kFile) {
      const auto path = path_named_by(git.path, "gitdir: ", top);
      if (!path) return;
      obeyed_.follow(git.path, *path, ProtectedPath::Treatment::kReadOnly);
      repositories_.push_back({top, git_folders_at(*path)});
    }
  }

  // The folder that a `.git` file names, and what it has in common with other worktrees.
  std::vector<std::string> git_folders_at(const std::string& path) {
    const plan::PathFact own = walker_.walk(path);
    std::vector<std::string> out{own.real};
    const auto common = path_named_by(own.real + "/commondir", "", own.real);
    if (common) out.push_back(walker_.walk(*common).real);
    return out;
  }

  // The other half of a linked worktree or a submodule, which `.git` names.
  void look_into_repository_elsewhere() {
    const plan::GitFact& git = facts_.git;
    if (git.kind != plan::GitFact::Kind::kWorktree || policy_.git != policy::GitAccess::kWrite) return;
    const bool submodule = git.own.kind == plan::FileKind::kAbsent;
    const std::string& own = submodule ? git.common.real : git.own.real;
    workspace::FileLook found;
    if (workspace::look_at(AT_FDCWD, own.c_str(), found)) {
      ProtectedPath folder{.path = own, .kind = protected_kind(found.mode)};
      identify(found.id, folder);
      look_into_written_git(folder);
    }
    if (submodule) return;
    for (const char* name : {"/refs", "/logs/refs", "/objects"}) look_into_shared(git.common.real + name);
  }

  // A tree that is a git folder itself is the guest's to write, but for what git obeys.
  void look_into_git(const ProtectedPath& git) {
    const bool top = git.path == facts_.work_folder + "/.git";
    if (obeyed_.is_tree(git.path) || (top && policy_.git == policy::GitAccess::kWrite)) look_into_written_git(git);
  }

  void look_into_written_git(const ProtectedPath& git) {
    plan::GitFolder folder{.tree = obeyed_.is_tree(git.path),
                           .path = git.path,
                           .device = git.device,
                           .inode = git.inode,
                           .born = git.born};
    for (const std::string& entry : obeyed_.entries(git.path, kMostHooks)) {
      workspace::FileLook look;
      if (!workspace::obeyed_by_git(base::name_of(entry)) || !workspace::look_at(AT_FDCWD, entry.c_str(), look))
        continue;
      ProtectedPath out{.path = entry, .kind = protected_kind(look.mode), .reason = "what git obeys"};
      identify(look.id, out);
      folder.obeyed.push_back(std::move(out));
    }
    add_places_of_objects(folder);
    add_odd(folder);
    folder.config = obeyed_.read(git.path + "/config", kMostConfig, false).value_or("");
    if (folder.config.size() > kMostKeptConfig) folder.config.clear();
    facts_.git_folders.push_back(std::move(folder));
  }

  // What names folders of objects elsewhere, which a later launch gives to its guest (GitFact::alternates).
  void add_places_of_objects(plan::GitFolder& folder) {
    for (const char* name : {"/objects/info", "/objects/info/alternates", "/objects/info/http-alternates"}) {
      const std::string path = folder.path + name;
      obeyed_.hold(path, folder.path);
      workspace::FileLook look;
      if (!workspace::look_at(AT_FDCWD, path.c_str(), look)) continue;
      ProtectedPath out{.path = path, .kind = protected_kind(look.mode), .reason = "where git finds more objects"};
      identify(look.id, out);
      folder.obeyed.push_back(std::move(out));
    }
  }

  // What is no file and no folder in a git folder that the guest may write: it stays as it is, like what git obeys.
  static void add_odd(plan::GitFolder& folder) {
    const auto root = base::open_resolved(AT_FDCWD, folder.path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
    base::Result<std::vector<workspace::Known>> odd;
    if (root) odd = workspace::find_odd_in_git(root->get(), folder.tree);
    if (!odd) return;
    std::set<std::string> obeyed;
    for (const ProtectedPath& path : folder.obeyed) obeyed.insert(path.path);
    for (const workspace::Known& known : *odd) {
      ProtectedPath out{
          .path = folder.path + "/" + known.path, .kind = kind_of(known.kind), .reason = "a link in .git"};
      if (obeyed.contains(out.path)) continue;
      identify(known.id, out);
      folder.obeyed.push_back(std::move(out));
    }
  }

  // Refs and their logs, which a linked worktree shares with the others.
  void look_into_shared(const std::string& path) {
    workspace::FileLook found;
    if (!workspace::look_at(AT_FDCWD, path.c_str(), found) || !S_ISDIR(found.mode)) return;
    plan::GitFolder folder{.whole = false, .path = path};
    identify(found.id, folder);
    add_odd(folder);
    facts_.git_folders.push_back(std::move(folder));
  }

  struct Config {
    std::string file;
    plan::GitRedirects found;
  };

  // These and what they include. What is included from the tree is protected.
  std::vector<Config> read_configs(std::vector<std::string> files) {
    std::vector<Config> out;
    std::set<std::string> seen;
    for (size_t at = 0; at < files.size(); ++at) {
      const std::string file = files[at];
      if (!seen.insert(file).second) continue;
      const auto text = obeyed_.read(file, kMostConfig, true);
      if (!text) continue;
      if (++configs_read_ > kMostConfigs) {
        obeyed_.refuse(facts_.work_folder,
                       "its repositories have more than " + std::to_string(kMostConfigs) + " configurations",
                       "start belljar in a smaller folder");
        break;
      }
      Config config{file, {}};
      plan::read_git_redirects(*text, config.found);
      // Relative to the path by which git came, not to where a link leads.
      for (const std::string& path : config.found.files) {
        if (std::string place = place_of(path, base::parent_of(file)); !place.empty()) {
          obeyed_.follow(file, place, ProtectedPath::Treatment::kReadOnly);
          files.push_back(std::move(place));
        }
      }
      out.push_back(std::move(config));
    }
    return out;
  }

  [[nodiscard]] std::string value_of(const char* name) const {
    const auto found = facts_.environment.find(name);
    return found == facts_.environment.end() ? std::string() : found->second;
  }

  // The configuration that holds for every repository (git-config(1), "FILES" and "ENVIRONMENT").
  std::vector<std::string> general_configs() {
    std::vector<std::string> out{"/etc/gitconfig"};
    if (const std::string system = value_of("GIT_CONFIG_SYSTEM"); !system.empty()) out.push_back(system);
    if (const std::string global = value_of("GIT_CONFIG_GLOBAL"); !global.empty()) out.push_back(global);
    if (const std::string config = value_of("XDG_CONFIG_HOME"); !config.empty()) {
      out.push_back(config + "/git/config");
    } else if (!facts_.home.empty()) {
      out.push_back(facts_.home + "/.config/git/config");
    }
    if (!facts_.home.empty()) out.push_back(facts_.home + "/.gitconfig");
    return out;
  }

  // What each repository's hooks, and the git config of the person and of the repository, send git to, when that lies
  // in what the guest may write: hooks that are kept with the code, a config that it includes.
  void follow_repositories() {
    std::vector<std::string> general = general_configs();
    for (const std::string& file : general) {
      obeyed_.follow(file, ProtectedPath::Treatment::kReadOnly);
      obeyed_.note_names(walker_.walk(file).real, ProtectedPath::Treatment::kReadOnly);
    }
    const std::vector<Config> everywhere = read_configs(std::move(general));
    if (const std::string folder = value_of("GIT_TEMPLATE_DIR"); !folder.empty()) {
      obeyed_.follow(folder, ProtectedPath::Treatment::kReadOnly);
      follow_hooks(folder);
    }
    add_repository_above();
    repositories_.push_back({facts_.work_folder, {facts_.work_folder + "/.git"}});
    std::set<std::string> seen;
    for (const Repository& repository : repositories_) {
      std::vector<std::string> files;
      for (const std::string& folder : repository.folders) {
        if (seen.insert(folder).second) follow_links_of(folder);
        files.push_back(folder + "/config");
        files.push_back(folder + "/config.worktree");
      }
      const std::vector<Config> own = read_configs(std::move(files));
      std::vector<std::string> tops{repository.top};
      for (const Config& config : own) {
        const std::string place = place_of(config.found.work_tree, base::parent_of(config.file));
        if (!place.empty()) tops.push_back(walker_.walk(place).real);
      }
      for (const std::string& top : tops) {
        follow_configs(everywhere, top);
        follow_configs(own, top);
      }
    }
  }

  // Links among what git obeys in a git folder.
  void follow_links_of(const std::string& git) {
    for (const std::string& entry : obeyed_.entries(git, kMostHooks)) {
      workspace::FileLook look;
      const std::string_view name = base::name_of(entry);
      if (!workspace::obeyed_by_git(name) || !workspace::look_at(AT_FDCWD, entry.c_str(), look)) continue;
      if (S_ISLNK(look.mode)) obeyed_.follow(entry, ProtectedPath::Treatment::kReadOnly);
      if (S_ISREG(look.mode)) obeyed_.note_names(entry, ProtectedPath::Treatment::kReadOnly);
      if (name == "hooks") follow_hooks(entry);
    }
  }

  // Git starts what they name at the top of the work tree (githooks(5)).
  void follow_configs(const std::vector<Config>& configs, const std::string& top) {
    for (const Config& config : configs) {
      for (const std::string& text : config.found.programs) {
        const std::string path = place_of(text, top);
        if (path.empty()) continue;
        obeyed_.follow(config.file, path, ProtectedPath::Treatment::kReadOnly);
        follow_hooks(path);
      }
      for (const std::string& word : config.found.words) follow_word(config.file, word, top);
      for (const std::string& name : config.found.names) {
        if (walker_.walk(place_of(name, top)).kind == plan::FileKind::kFile) follow_word(config.file, name, top);
      }
    }
  }

  // Not every word is a path: one that leads to nothing counts where the folder for it is there.
  void follow_word(const std::string& config, const std::string& word, const std::string& top) {
    const std::string path = place_of(word, top);
    if (path.empty()) return;
    const plan::PathFact fact = walker_.walk(path);
    const bool there = fact.kind != plan::FileKind::kAbsent || fact.shut || walker_.exists(base::parent_of(fact.real));
    if (there && fact.kind != plan::FileKind::kFolder)
      obeyed_.follow(config, path, ProtectedPath::Treatment::kReadOnly);
  }

  // The one that the work folder lies in, with a repository of its own or without. Git obeys none of another owner
  // (git-config(1), safe.directory).
  void add_repository_above() {
    for (std::string at = facts_.work_folder; at != "/";) {
      at = base::parent_of(at);
      const std::string git = at == "/" ? "/.git" : at + "/.git";
      const plan::PathFact fact = walker_.walk(git);
      if (fact.kind == plan::FileKind::kAbsent) continue;
      if (fact.uid != facts_.uid && fact.uid != walker_.walk(facts_.work_folder).uid) return;
      if (fact.kind == plan::FileKind::kFolder) {
        repositories_.push_back({at, {fact.real}});
      } else if (const auto path = path_named_by(git, "gitdir: ", at); fact.kind == plan::FileKind::kFile && path) {
        repositories_.push_back({at, git_folders_at(*path)});
      }
      return;
    }
  }

  // Of the home, of the folders above and of the agent: what is there may be kept with the code.
  void follow_settings_around() {
    std::vector<std::string> folders;
    if (!facts_.home.empty()) folders.push_back(walker_.walk(facts_.home).real);
    const plan::PathFact work = walker_.walk(facts_.work_folder);
    for (std::string at = base::parent_of(facts_.work_folder); at != "/"; at = base::parent_of(at)) {
      const plan::PathFact fact = walker_.walk(at);
      // Where others put links, they would say what the agent may not write.
      const bool others = (fact.mode & S_IWOTH) != 0 || (fact.uid != facts_.uid && fact.uid != work.uid);
      if (!others && (folders.empty() || at != folders.front())) folders.push_back(at);
    }
    for (const std::string& folder : folders) {
      const std::vector<std::string> entries = obeyed_.entries(folder, kMostAround);
      if (entries.size() == kMostAround) facts_.unseen_folders.push_back(folder);
      for (const std::string& entry : entries) {
        const workspace::NameKind kind = workspace::protected_name(base::name_of(entry));
        if (kind == workspace::NameKind::kFile) follow_around(entry, 0);
        if (kind == workspace::NameKind::kFolder) follow_folder_around(entry);
      }
    }
    for (const std::string& text : policy_.agent.obeyed) {
      if (const auto path = plan::expand_path(text, facts_.home, {})) follow_around(*path, kDepthAround);
    }
    for (const std::string_view name : policy::agent_names()) {
      const auto path = plan::expand_path(policy::find_agent(name)->state_file, facts_.home, {});
      if (path) follow_around(*path, 0);
    }
  }

  // An agent's folder is full of what its sessions left: of the folders in it only those that it obeys.
  void follow_folder_around(const std::string& folder) {
    const std::string prefix = "~/" + std::string(base::name_of(folder)) + "/";
    std::vector<std::string> parts;
    for (const std::string_view name : policy::agent_names()) {
      for (const std::string& text : policy::find_agent(name)->obeyed) {
        if (text.starts_with(prefix)) parts.push_back(folder + "/" + text.substr(prefix.size()));
      }
    }
    follow_around(folder, parts.empty() ? kDepthAround : 1);
    for (const std::string& part : parts) follow_around(part, kDepthAround);
  }

  // With the links in a folder, `depth` deep.
  void follow_around(const std::string& path, size_t depth) {
    if (!obeyed_.tree_of(path).empty() || obeyed_.is_tree(path)) return;  // found there
    obeyed_.follow(path, ProtectedPath::Treatment::kReadOnly);
    const plan::PathFact fact = walker_.walk(path);
    if (fact.kind == plan::FileKind::kFile) {
      obeyed_.note_names(fact.real, ProtectedPath::Treatment::kReadOnly);
    } else if (depth > 0 && fact.kind == plan::FileKind::kFolder && !base::is_within(facts_.work_folder, fact.real)) {
      obeyed_.follow_links_around(fact.real, depth);
    }
  }

  // The policy itself; and where it names a path to hide or to keep, the links on the way, and other names of the
  // files.
  void follow_policy() {
    for (const std::string& file : policy_.read_from) {
      const auto path = plan::expand_path(file, facts_.home, facts_.work_folder);
      if (!path) continue;
      obeyed_.follow(*path, ProtectedPath::Treatment::kReadOnly);
      obeyed_.note_names(walker_.walk(*path).real, ProtectedPath::Treatment::kReadOnly);
    }
    for (const auto* list : {&policy_.files.hide, &policy_.files.read}) {
      for (const std::string& text : *list) {
        const auto path = plan::expand_path(text, facts_.home, facts_.work_folder);
        if (!path) continue;
        obeyed_.keep_way(text, *path);
        const std::string real = walker_.walk(*path).real;
        if (obeyed_.tree_of(real).empty()) continue;
        obeyed_.note_names(
            real, list == &policy_.files.hide ? ProtectedPath::Treatment::kMask : ProtectedPath::Treatment::kReadOnly);
      }
    }
  }

  [[nodiscard]] std::string home_of(std::string_view name) const {
    for (const plan::User& user : plan::users_of(facts_.passwd)) {
      if (user.name == name) return user.home;
    }
    return {};
  }

  // `text` of git's configuration as a path, in which `..` stands: what it leaves may be a link. Empty when it is none.
  [[nodiscard]] std::string place_of(std::string_view text, const std::string& from) const {
    constexpr std::string_view kOptional = ":(optional)";
    if (text.starts_with(kOptional)) text.remove_prefix(kOptional.size());
    if (text.empty() || text.contains('\0')) return {};
    if (text.front() == '~') {
      const std::string_view user = text.substr(1, std::min(text.find('/'), text.size()) - 1);
      const std::string home = user.empty() ? facts_.home : home_of(user);
      return home.empty() ? home : home + std::string(text.substr(1 + user.size()));
    }
    return text.front() == '/' ? std::string(text) : from + "/" + std::string(text);
  }

  // A hook is often a link to a script that is kept with the code, or another name of it.
  void follow_hooks(const std::string& hooks) {
    for (const std::string& hook : obeyed_.entries(hooks, kMostHooks)) {
      workspace::FileLook look;
      if (!workspace::look_at(AT_FDCWD, hook.c_str(), look)) continue;
      if (S_ISLNK(look.mode)) obeyed_.follow(hook, ProtectedPath::Treatment::kReadOnly);
      if (S_ISREG(look.mode)) obeyed_.note_names(hook, ProtectedPath::Treatment::kReadOnly);
    }
    const std::string folder = walker_.walk(hooks).real;
    if (!base::is_within(facts_.work_folder, folder)) obeyed_.follow_links_in(folder);
  }

  const policy::Policy& policy_;
  plan::Facts& facts_;
  Walker& walker_;
  ObeyedPaths obeyed_;
  std::vector<std::string> settings_;  // folders of them
  struct Repository {
    std::string top;
    std::vector<std::string> folders;  // where its configuration lies
  };
  std::vector<Repository> repositories_;
  size_t configs_read_ = 0;
};

}  // namespace

base::Status gather_protected(const policy::Policy& policy, plan::Facts& facts, Walker& walker) {
  if (facts.work_folder == "/") return {};
  return Gatherer(policy, facts, walker).run();
}

}  // namespace belljar::session
