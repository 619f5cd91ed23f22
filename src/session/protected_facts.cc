#include "session/protected_facts.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "plan/git_identity.h"
#include "session/special_facts.h"
#include "workspace/protected.h"

namespace belljar::session {
namespace {

using plan::ProtectedPath;

constexpr size_t kMostConfig = 64U << 10U;
constexpr size_t kMostHooks = 1000;
constexpr size_t kMostConfigs = 50;

ProtectedPath::Kind kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return ProtectedPath::Kind::kFolder;
  if (S_ISREG(mode)) return ProtectedPath::Kind::kFile;
  return S_ISLNK(mode) ? ProtectedPath::Kind::kLink : ProtectedPath::Kind::kOther;
}

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
      : policy_(policy), facts_(facts), walker_(walker) {}

  base::Status run() {
    trees_ = written_trees();
    const std::vector<std::string> others = trees_;
    trees_.push_back(facts_.work_folder);
    BELLJAR_TRY(look_through(facts_.work_folder, policy_.files.approve));
    for (const std::string& tree : others) BELLJAR_TRY(look_through(tree, {}));
    look_into_repository_elsewhere();
    follow_configs();
    for (std::vector<std::string>* list : {&facts_.watched, &facts_.held}) {
      std::ranges::sort(*list);
      const auto repeated = std::ranges::unique(*list);
      list->erase(repeated.begin(), repeated.end());
    }
    if (shut_.empty()) return {};
    return base::refuse("protect what programs obey in", facts_.work_folder,
                        "'" + shut_ + "' cannot be looked at, since a folder above it is shut, refusing",
                        "open the folder (chmod u+rx), or take away what leads there");
  }

 private:
  base::Status look_through(const std::string& tree, const std::vector<std::string>& approved) {
    BELLJAR_ASSIGN(const base::Fd root, base::open_resolved(AT_FDCWD, tree, O_PATH | O_DIRECTORY,
                                                            RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
    BELLJAR_ASSIGN(workspace::Protected found, workspace::find_protected(root.get(), approved));
    for (const workspace::Known& known : found.known) {
      // A tree around the work folder: what lies in there was found already.
      const std::string path = known.path.empty() ? tree : tree + "/" + known.path;
      if (tree == facts_.work_folder || !base::is_within(path, facts_.work_folder)) add(known, path);
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
    if (path.kind == ProtectedPath::Kind::kLink) follow(path.path, path.treatment);
    if (path.repository && path.kind == ProtectedPath::Kind::kFolder) look_into_git(path);
    if (path.repository) add_repository(path);
    facts_.protected_paths.push_back(std::move(path));
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
      follow(git.path, *path, ProtectedPath::Treatment::kReadOnly);
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

  // What a protected link leads to is obeyed as the link is: it is protected too, or watched when there is nothing yet.
  void follow(const std::string& link, ProtectedPath::Treatment treatment) { follow(link, link, treatment); }

  // As above for `path`, because `leader` leads there. What counts is what lies under this very path: so does each link
  // on the way, and no folder above may become another one.
  void follow(const std::string& leader, const std::string& path, ProtectedPath::Treatment treatment) {
    const plan::PathFact fact = walker_.walk(path);
    for (const plan::LinkFact& link : fact.links) {
      if (tree_of(link.path).empty() || lies_in_git(link.path)) continue;
      hold(link.path, tree_of(link.path));
      protect(link.path, ProtectedPath::Treatment::kReadOnly, leader);
    }
    const std::string tree = tree_of(fact.real);
    if (tree.empty()) return;
    hold(fact.real, tree);
    if (fact.shut) {
      if (shut_.empty()) shut_ = fact.real;
    } else if (fact.kind == plan::FileKind::kAbsent) {
      facts_.watched.push_back(fact.real);
    } else {
      protect(fact.real, treatment, leader);
    }
  }

  void protect(const std::string& path, ProtectedPath::Treatment treatment, const std::string& leader) {
    const auto known = [&](const ProtectedPath& each) { return each.path == path; };
    workspace::FileLook look;
    if (std::ranges::any_of(facts_.protected_paths, known) || !workspace::look_at(AT_FDCWD, path.c_str(), look)) return;
    ProtectedPath out;
    out.path = path;
    out.kind = kind_of(look.mode);
    out.treatment = treatment;
    out.reason = "'" + leader + "' leads here";
    identify(look.id, out);
    facts_.protected_paths.push_back(std::move(out));
  }

  // The innermost of the trees that the guest may write, in which `path` lies; empty when it lies in none.
  [[nodiscard]] std::string tree_of(const std::string& path) const {
    std::string out;
    for (const std::string& tree : trees_) {
      if (path != tree && base::is_within(path, tree) && tree.size() > out.size()) out = tree;
    }
    return out;
  }

  // `path` is obeyed where it is, so that none of the folders above it in `tree` may be renamed.
  void hold(const std::string& path, const std::string& tree) {
    for (std::string at = base::parent_of(path); at != tree && base::is_within(at, tree); at = base::parent_of(at)) {
      if (walker_.exists(at)) facts_.held.push_back(at);
    }
  }

  // What lies in there is looked at with the git folder.
  [[nodiscard]] static bool lies_in_git(const std::string& path) {
    const auto names = base::split(base::parent_of(path), '/');
    return std::ranges::any_of(
        names, [](std::string_view name) { return workspace::protected_name(name) == workspace::NameKind::kGit; });
  }

  // The entries of `folder`, as paths; not more than a thousand.
  static std::vector<std::string> entries_of(const std::string& folder) {
    std::vector<std::string> out;
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
    while (open && out.size() < kMostHooks) {
      const dirent* entry = ::readdir(open.get());
      if (entry == nullptr) break;
      const std::string_view name(static_cast<const char*>(entry->d_name));
      if (name != "." && name != "..") out.push_back(folder + "/" + std::string(name));
    }
    return out;
  }

  // The other half of a linked worktree or a submodule, which `.git` names.
  void look_into_repository_elsewhere() {
    const plan::GitFact& git = facts_.git;
    if (git.kind != plan::GitFact::Kind::kWorktree) return;
    const bool write = policy_.git == policy::GitAccess::kWrite;
    const bool submodule = git.own.kind == plan::FileKind::kAbsent;
    const auto look = [&](const std::string& path, bool writable) {
      workspace::FileLook found;
      if (!workspace::look_at(AT_FDCWD, path.c_str(), found)) return;
      ProtectedPath folder{.path = path, .kind = kind_of(found.mode)};
      identify(found.id, folder);
      look_into_git(folder, writable);
    };
    look(git.common.real, write && submodule);
    if (submodule) return;
    look(git.own.real, write);
    if (!write) return;
    for (const char* name : {"/refs", "/logs/refs"}) look_into_shared(git.common.real + name);
  }

  // A tree that is a git folder itself is the guest's to write, but for what git obeys.
  void look_into_git(const ProtectedPath& git) {
    const bool top = git.path == facts_.work_folder + "/.git";
    const bool tree = std::ranges::find(trees_, git.path) != trees_.end();
    look_into_git(git, tree || (top && policy_.git == policy::GitAccess::kWrite));
  }

  void look_into_git(const ProtectedPath& git, bool writable) {
    const auto open = workspace::OpenedFolder::open(AT_FDCWD, git.path.c_str(), true);
    plan::GitFolder folder{.whole = true, .path = git.path, .device = git.device, .inode = git.inode, .born = git.born};
    for (const std::string& entry : entries_of(git.path)) {
      const std::string_view name = base::name_of(entry);
      workspace::FileLook look;
      if (!workspace::look_at(AT_FDCWD, entry.c_str(), look)) continue;
      if (!workspace::obeyed_by_git(name)) continue;
      if (S_ISLNK(look.mode)) follow(entry, ProtectedPath::Treatment::kReadOnly);
      if (name == "hooks" && S_ISDIR(look.mode)) follow_hooks(entry);
      if (!writable) continue;
      ProtectedPath out{.path = entry, .kind = kind_of(look.mode), .reason = "what git obeys"};
      identify(look.id, out);
      folder.obeyed.push_back(std::move(out));
    }
    if (!writable) return;
    add_places_of_objects(folder);
    add_odd(folder, std::ranges::find(trees_, git.path) != trees_.end());
    folder.config = base::read_regular_file(git.path + "/config", kMostConfig, false).value_or("");
    facts_.git_folders.push_back(std::move(folder));
  }

  // What names folders of objects elsewhere, which a later launch gives to its guest (GitFact::alternates).
  void add_places_of_objects(plan::GitFolder& folder) {
    for (const char* name : {"/objects/info", "/objects/info/alternates", "/objects/info/http-alternates"}) {
      const std::string path = folder.path + name;
      hold(path, folder.path);
      workspace::FileLook look;
      if (!workspace::look_at(AT_FDCWD, path.c_str(), look)) continue;
      ProtectedPath out{.path = path, .kind = kind_of(look.mode), .reason = "where git finds more objects"};
      identify(look.id, out);
      folder.obeyed.push_back(std::move(out));
    }
  }

  // What is no file and no folder in a git folder that the guest may write: it stays as it is, like what git obeys.
  static void add_odd(plan::GitFolder& folder, bool tree) {
    const auto root = base::open_resolved(AT_FDCWD, folder.path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
    base::Result<std::vector<workspace::Known>> odd;
    if (root) odd = workspace::find_odd_in_git(root->get(), tree);
    if (!odd) return;
    for (const workspace::Known& known : *odd) {
      ProtectedPath out{
          .path = folder.path + "/" + known.path, .kind = kind_of(known.kind), .reason = "a link in .git"};
      const auto same = [&](const ProtectedPath& path) { return path.path == out.path; };
      if (std::ranges::any_of(folder.obeyed, same)) continue;
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
    add_odd(folder, false);
    facts_.git_folders.push_back(std::move(folder));
  }

  struct Config {
    std::string file;
    plan::GitRedirects found;
  };

  // These and what they include, as far as they can be read. What is included from the tree is protected.
  std::vector<Config> read_configs(std::vector<std::string> files) {
    std::vector<Config> out;
    for (size_t at = 0; at < files.size() && at < kMostConfigs; ++at) {
      const auto text = base::read_regular_file(files[at], kMostConfig, true);
      if (!text) continue;
      Config config{files[at], {}};
      plan::read_git_redirects(*text, config.found);
      for (const std::string& path : config.found.files) {
        if (std::string real = protect_target(files[at], path, base::parent_of(files[at])); !real.empty()) {
          files.push_back(std::move(real));
        }
      }
      out.push_back(std::move(config));
    }
    return out;
  }

  // What the person's and a repository's git config send git to, when that lies in what the guest may write: hooks that
  // are kept with the code, a config that it includes.
  void follow_configs() {
    std::vector<std::string> files{"/etc/gitconfig"};
    const auto config_home = facts_.environment.find("XDG_CONFIG_HOME");
    if (config_home != facts_.environment.end() && !config_home->second.empty()) {
      files.push_back(config_home->second + "/git/config");
    } else if (!facts_.home.empty()) {
      files.push_back(facts_.home + "/.config/git/config");
    }
    if (!facts_.home.empty()) files.push_back(facts_.home + "/.gitconfig");
    const std::vector<Config> everywhere = read_configs(std::move(files));
    add_repository_above();
    repositories_.push_back({facts_.work_folder, {facts_.work_folder + "/.git"}});
    for (const Repository& repository : repositories_) {
      follow_configs(everywhere, repository.top);
      std::vector<std::string> own;
      for (const std::string& folder : repository.folders) {
        own.push_back(folder + "/config");
        own.push_back(folder + "/config.worktree");
      }
      follow_configs(read_configs(std::move(own)), repository.top);
    }
  }

  // Git starts what they name at the top of the work tree (githooks(5)). A word of a command line that is no path is
  // looked for in PATH, unless it is there as a file for the one before it.
  void follow_configs(const std::vector<Config>& configs, const std::string& top) {
    for (const Config& config : configs) {
      for (const std::string& path : config.found.programs) protect_target(config.file, path, top);
      for (const std::string& word : config.found.words) {
        const auto path = plan::expand_path(word, facts_.home, top);
        if (!path || walker_.walk(*path).kind == plan::FileKind::kFolder) continue;
        if (word.contains('/') || walker_.exists(*path)) protect_target(config.file, word, top);
      }
    }
  }

  // The one that the work folder lies in, with a repository of its own or without.
  void add_repository_above() {
    for (std::string at = facts_.work_folder; at != "/";) {
      at = base::parent_of(at);
      const std::string git = at == "/" ? "/.git" : at + "/.git";
      const plan::PathFact fact = walker_.walk(git);
      if (fact.kind == plan::FileKind::kFolder) {
        repositories_.push_back({at, {fact.real}});
      } else if (const auto path = path_named_by(git, "gitdir: ", at); fact.kind == plan::FileKind::kFile && path) {
        repositories_.push_back({at, git_folders_at(*path)});
      }
      if (fact.kind != plan::FileKind::kAbsent) return;
    }
  }

  // The real path of `text`, which `config` names.
  std::string protect_target(const std::string& config, const std::string& text, const std::string& from) {
    auto path = plan::expand_path(text, facts_.home, from);
    if (!path) return {};
    std::string real = walker_.walk(*path).real;
    follow(config, *path, ProtectedPath::Treatment::kReadOnly);
    return real;
  }

  // A hook is often a link to a script that is kept with the code.
  void follow_hooks(const std::string& hooks) {
    const auto open = workspace::OpenedFolder::open(AT_FDCWD, hooks.c_str(), true);
    for (const std::string& hook : entries_of(hooks)) {
      workspace::FileLook look;
      if (workspace::look_at(AT_FDCWD, hook.c_str(), look) && S_ISLNK(look.mode)) {
        follow(hook, ProtectedPath::Treatment::kReadOnly);
      }
    }
  }

  const policy::Policy& policy_;
  plan::Facts& facts_;
  Walker& walker_;
  std::vector<std::string> trees_;  // what the guest may write: the work folder, and folders that the policy names
  struct Repository {
    std::string top;
    std::vector<std::string> folders;  // where its configuration lies
  };
  std::vector<Repository> repositories_;
  std::string shut_;  // the first that could not be looked at
};

}  // namespace

base::Status gather_protected(const policy::Policy& policy, plan::Facts& facts, Walker& walker) {
  if (facts.work_folder == "/") return {};
  return Gatherer(policy, facts, walker).run();
}

}  // namespace belljar::session
