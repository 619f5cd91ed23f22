#include "session/obeyed_paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "workspace/protected.h"

namespace belljar::session {
namespace {

using plan::ProtectedPath;

constexpr size_t kMostLinks = 10'000;

// In no list of workspace::protected_name(): the agent may write the project's own as well.
bool is_document(std::string_view path) {
  constexpr std::array<std::string_view, 3> kDocuments = {"AGENTS.md", "CLAUDE.md", "GEMINI.md"};
  return std::ranges::find(kDocuments, base::name_of(path)) != kDocuments.end();
}

// What lies in there is looked at with the git folder.
bool lies_in_git(const std::string& path) {
  const std::string folder = base::parent_of(path);
  return std::ranges::any_of(base::split(folder, '/'), [](std::string_view name) {
    return workspace::protected_name(name) == workspace::NameKind::kGit;
  });
}

// True for what open(2) says of a path where nothing is to be read. Without a code it is no regular file; a socket has
// ENXIO.
bool is_nothing(int code) {
  constexpr std::array kNothing = {0, ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, ENXIO};
  return std::ranges::find(kNothing, code) != kNothing.end();
}

}  // namespace

ProtectedPath::Kind protected_kind(mode_t mode) {
  if (S_ISDIR(mode)) return ProtectedPath::Kind::kFolder;
  if (S_ISREG(mode)) return ProtectedPath::Kind::kFile;
  return S_ISLNK(mode) ? ProtectedPath::Kind::kLink : ProtectedPath::Kind::kOther;
}

void ObeyedPaths::follow(const std::string& leader, const std::string& path, ProtectedPath::Treatment treatment) {
  const plan::PathFact fact = walker_.walk(path);
  keep_way(fact, leader);
  keep_end(fact, leader, treatment);
}

void ObeyedPaths::keep_way(const plan::PathFact& fact, const std::string& leader) {
  for (const plan::LinkFact& link : fact.links) protect_link(link.path, leader);
  // What a `..` leads out of could be a link by then.
  for (const std::string& left : fact.left) {
    if (!left_.insert(left).second) continue;
    const std::string tree = tree_of(left);
    if (tree.empty()) continue;
    hold(left + "/.", tree);
    if (!walker_.exists(left) && !lies_in_copy(left)) facts_.watched.push_back(left);
  }
}

void ObeyedPaths::keep_end(const plan::PathFact& fact, const std::string& leader, ProtectedPath::Treatment treatment) {
  // Nothing of it could be protected without all of it.
  if (fact.kind == plan::FileKind::kFolder && base::is_within(facts_.work_folder, fact.real)) {
    facts_.obeyed_whole.push_back(leader);
  }
  const std::string tree = tree_of(fact.real);
  if (tree.empty() || is_approved(fact.real)) return;
  hold(fact.real, tree);
  if (fact.shut) {
    refuse(fact.real, "a folder above it is shut", "open the folder (chmod u+rx), or take away what leads there");
  } else if (lies_in_protected(fact.real)) {
    return;
  } else if (fact.kind != plan::FileKind::kAbsent) {
    protect(fact.real, treatment, leader);
  } else if (!walker_.exists(fact.real)) {
    // Else the path ends before it gets there, at something that is watched, or in a loop of links, which are
    // protected.
    facts_.watched.push_back(fact.real);
    if (tree_of(leader).empty() && !is_tree(leader)) facts_.awaited.emplace(fact.real, leader);
  }
}

void ObeyedPaths::refuse_unread(const std::string& path, int code) {
  refuse(path, std::string("it cannot be read: ") + ::strerrordesc_np(code), "see to it that it can");
}

std::optional<std::string> ObeyedPaths::read(const std::string& file, size_t most, bool follow) {
  auto text = base::read_regular_file(file, most, follow);
  if (text) return std::move(*text);
  const int code = text.error().code;
  if (is_nothing(code) || (code == EACCES && !facts_.root)) return std::nullopt;
  if (code == EFBIG) {
    refuse(file, "it is too large", "make it smaller");
  } else if (code == EWOULDBLOCK) {
    refuse(file, "a process keeps others from it by a lease", "end that process: /proc/locks names it");
  } else {
    refuse_unread(file, code);
  }
  return std::nullopt;
}

std::vector<std::string> ObeyedPaths::entries(const std::string& folder, size_t most) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (!open && errno == EACCES) {
    if (!tree_of(folder).empty()) refuse(folder, "it is shut", "open the folder (chmod u+rx)");
  } else if (!open && !is_nothing(errno)) {
    refuse_unread(folder, errno);
  }
  while (open && out.size() < most) {
    errno = 0;
    const dirent* entry = ::readdir(open.get());
    if (entry == nullptr) {
      if (errno != 0) refuse_unread(folder, errno);
      break;
    }
    const std::string_view name(static_cast<const char*>(entry->d_name));
    if (name != "." && name != "..") out.push_back(folder + "/" + std::string(name));
  }
  return out;
}

void ObeyedPaths::follow_links(const Settings& settings) {
  constexpr size_t kMostOutside = 20'000;
  std::vector<std::string> folders{settings.folder};
  while (!folders.empty()) {
    const std::string at = std::move(folders.back());
    folders.pop_back();
    if (!settings_.insert(at).second) continue;
    const auto open = base::open_resolved(AT_FDCWD, at, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
    if (!open) continue;  // shut to the guest as well
    const bool top = at == settings.folder;
    workspace::ElsewhereOptions options{.settings = top};
    if (tree_of(at).empty()) options.most = kMostOutside;
    if (top) options.depth = settings.depth;
    options.names = settings.own || !top;
    const auto found = workspace::find_elsewhere(open->get(), options);
    if (!found) continue;
    if (!found->complete) facts_.unseen_folders.push_back(at);
    for (const std::string& link : found->links) follow_setting(settings, at, at + "/" + link, folders);
    for (const std::string& name : found->names) {
      // Their files are shared with a store and with other projects, and obeyed by nobody unasked.
      if (!workspace::lies_in_packages(name)) note_names(at + "/" + name, ProtectedPath::Treatment::kReadOnly);
    }
  }
}

void ObeyedPaths::follow_setting(const Settings& settings, const std::string& folder, const std::string& link,
                                 std::vector<std::string>& more) {
  const plan::PathFact fact = walker_.walk(link);
  const auto inside = [&](const std::string& path) { return base::is_within(path, folder); };
  if (inside(fact.real) && std::ranges::all_of(fact.links, inside, &plan::LinkFact::path) &&
      std::ranges::all_of(fact.left, inside)) {
    return;
  }
  if (settings.own && leads_to_packages(fact)) return keep_way_to_packages(fact, link);
  if (concerns_trees(fact) && ++links_ > kMostLinks) {
    refuse(folder, "more than " + std::to_string(kMostLinks) + " links lead out of settings",
           "approve the folder (--approve), or take links away");
    return;
  }
  keep_way(fact, link);
  if (base::is_within(settings.folder, fact.real)) return;
  if (settings.own && is_document(fact.real)) return;
  keep_end(fact, link, ProtectedPath::Treatment::kReadOnly);
  if (fact.kind == plan::FileKind::kFolder) more.push_back(fact.real);
}

// What lies in them is the installer's to replace, links too; what leads there is not.
void ObeyedPaths::keep_way_to_packages(plan::PathFact fact, const std::string& leader) {
  const auto lies_there = [&](const std::string& path) { return lies_in_packages(path); };
  std::erase_if(fact.links, [&](const plan::LinkFact& link) { return lies_there(link.path); });
  std::erase_if(fact.left, lies_there);
  keep_way(fact, leader);
}

bool ObeyedPaths::concerns_trees(const plan::PathFact& fact) const {
  return !tree_of(fact.real).empty() || std::ranges::any_of(fact.links, [&](const plan::LinkFact& link) {
    return !tree_of(link.path).empty() && !lies_in_copy(link.path);
  });
}

void ObeyedPaths::protect_link(const std::string& path, const std::string& leader) {
  const std::string tree = tree_of(path);
  if (tree.empty() || lies_in_git(path) || is_approved(path)) return;
  hold(path, tree);
  if (!lies_in_protected(path)) protect(path, ProtectedPath::Treatment::kReadOnly, leader);
}

void ObeyedPaths::protect(const std::string& path, ProtectedPath::Treatment treatment, const std::string& leader) {
  const auto known = std::ranges::find(facts_.protected_paths, path, &ProtectedPath::path);
  if (known != facts_.protected_paths.end()) {
    if (treatment == ProtectedPath::Treatment::kMask) known->treatment = treatment;
    return;
  }
  workspace::FileLook look;
  if (!workspace::look_at(AT_FDCWD, path.c_str(), look)) return;
  if (S_ISREG(look.mode) && look.links > 1) names_.try_emplace(look.id, Named{path, treatment});
  facts_.protected_paths.push_back({.path = path,
                                    .kind = protected_kind(look.mode),
                                    .treatment = treatment,
                                    .device = look.id.device,
                                    .inode = look.id.inode,
                                    .born = look.id.born,
                                    .reason = "'" + leader + "' leads here"});
}

void ObeyedPaths::note_names(const std::string& path, ProtectedPath::Treatment treatment) {
  workspace::FileLook look;
  if (!workspace::look_at(AT_FDCWD, path.c_str(), look)) return;
  if (S_ISREG(look.mode) && look.links > 1) {
    const auto [at, fresh] = names_.try_emplace(look.id, Named{path, treatment});
    if (!fresh && treatment == ProtectedPath::Treatment::kMask) at->second = {path, treatment};
  }
  if (!S_ISDIR(look.mode)) return;
  const auto open = base::open_resolved(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
  const auto found = open ? workspace::find_elsewhere(open->get(), {}) : std::unexpected(open.error());
  if (!found) return;
  for (const std::string& name : found->names) note_names(path + "/" + name, treatment);
}

void ObeyedPaths::keep_other_names() {
  if (names_.empty()) return;
  std::set<workspace::FileId> files;
  for (const auto& [id, named] : names_) files.insert(id);
  for (const std::string& tree : trees_) {
    const auto open = base::open_resolved(AT_FDCWD, tree, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
    const auto found = open ? workspace::find_names(open->get(), files) : std::unexpected(open.error());
    if (!found) continue;
    for (const auto& [name, id] : *found) {
      const std::string path = tree + "/" + name;
      const Named& named = names_.at(id);
      const bool hidden = named.treatment == ProtectedPath::Treatment::kMask;
      const bool free = is_approved(path) && (is_approved(named.path) || tree_of(named.path).empty());
      if (path == named.path) continue;
      if (!hidden && (free || is_document(path) || lies_in_protected(path) || lies_in_packages(path))) continue;
      protect(path, named.treatment, named.path);
    }
  }
}

// In a folder that the guest cannot write, or has a copy of.
bool ObeyedPaths::lies_in_protected(const std::string& path) const {
  const auto opened = [&](const std::string& folder) {
    return std::ranges::any_of(policy_.files.write, [&](const std::string& text) {
      const auto written = plan::expand_path(text, facts_.home, facts_.work_folder);
      return written && base::is_within(walker_.walk(*written).real, folder);
    });
  };
  return std::ranges::any_of(facts_.protected_paths, [&](const ProtectedPath& each) {
    const bool below =
        each.kind == ProtectedPath::Kind::kFolder && path != each.path && base::is_within(path, each.path);
    return below && !opened(each.path) &&
           std::ranges::none_of(facts_.git_folders, [&](const auto& git) { return git.path == each.path; });
  });
}

void ObeyedPaths::hold(const std::string& path, const std::string& tree) {
  for (std::string at = base::parent_of(path); at != tree && base::is_within(at, tree); at = base::parent_of(at)) {
    if (walker_.exists(at)) facts_.held.push_back(at);
  }
}

std::string ObeyedPaths::tree_of(const std::string& path) const {
  std::string out;
  for (const std::string& tree : trees_) {
    if (path != tree && base::is_within(path, tree) && tree.size() > out.size()) out = tree;
  }
  return out;
}

bool ObeyedPaths::is_tree(const std::string& path) const {
  return std::ranges::find(trees_, path) != trees_.end();
}

void ObeyedPaths::refuse(const std::string& path, const std::string& why, const std::string& hint) {
  if (fault_) return;
  fault_ = base::refuse("protect what programs obey", path, why + ", refusing", hint).error();
}

bool ObeyedPaths::is_approved(const std::string& path) const {
  const std::string& top = facts_.work_folder;
  return base::is_within(path, top) && path != top &&
         workspace::is_approved(policy_.files.approve, path.substr(top.size() + 1));
}

// In a folder of which the guest has a copy.
bool ObeyedPaths::lies_in_copy(const std::string& path) const {
  return std::ranges::any_of(facts_.protected_paths, [&](const ProtectedPath& each) {
    return each.treatment == ProtectedPath::Treatment::kPrivate && each.kind == ProtectedPath::Kind::kFolder &&
           path != each.path && base::is_within(path, each.path);
  });
}

bool ObeyedPaths::leads_to_packages(const plan::PathFact& fact) const {
  return lies_in_packages(fact.real) ||
         std::ranges::any_of(fact.links, [&](const plan::LinkFact& link) { return lies_in_packages(link.path); });
}

bool ObeyedPaths::lies_in_packages(const std::string& path) const {
  const std::string tree = tree_of(path);
  return !tree.empty() && workspace::lies_in_packages(path.substr(tree.size() + 1));
}

}  // namespace belljar::session
