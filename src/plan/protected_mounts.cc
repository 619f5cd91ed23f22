#include "plan/protected_mounts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/path.h"

namespace belljar::plan {
namespace {

// Each is a mount of its own, and a launch has to make them all.
constexpr size_t kMostProtected = 2000;
// Private copies cost more, and hold memory.
constexpr size_t kMostPrivate = 100;

std::vector<std::string> written_by_policy(const Draft& draft) {
  std::vector<std::string> out;
  for (const std::string& text : draft.policy.files.write) {
    const auto path = expand_path(text, draft.facts.home, draft.facts.work_folder);
    if (path) out.push_back(draft.fact(*path).real);
  }
  return out;
}

MountKind kind_of(const ProtectedPath& path, bool may_be_private) {
  switch (path.treatment) {
    case ProtectedPath::Treatment::kMask:
      return path.kind == ProtectedPath::Kind::kLink ? MountKind::kReadOnly : MountKind::kMask;
    case ProtectedPath::Treatment::kPrivate:
      return may_be_private && path.kind == ProtectedPath::Kind::kFolder ? MountKind::kPrivate : MountKind::kReadOnly;
    case ProtectedPath::Treatment::kReadOnly:
      break;
  }
  return MountKind::kReadOnly;
}

// What the policy wants written inside a private copy goes to the host all the same.
void keep_written(Draft& draft, const std::string& inside, const std::vector<std::string>& written) {
  for (const std::string& path : written) {
    if (!base::is_within(path, inside) || draft.table.at(path) != nullptr) continue;
    draft.table.add({.target = path,
                     .source = path,
                     .writable = true,
                     .idmap = draft.identity.idmap,
                     .reason = std::string(kWriteReason)});
  }
}

}  // namespace

std::string remedy_for_many(std::span<const ProtectedPath> paths) {
  const bool shut = std::ranges::any_of(paths, &ProtectedPath::shut);
  const bool put_away = std::ranges::any_of(
      paths, [](const ProtectedPath& path) { return path.treatment == ProtectedPath::Treatment::kMask && !path.shut; });
  return std::string(put_away ? "'belljar quarantine drop --all', or " : "") +
         (shut ? "open or remove the folders that are shut (find . -type d ! -perm -u+rx), or " : "") +
         "start belljar in a smaller folder";
}

base::Status add_protected(Draft& draft) {
  if (draft.facts.protected_paths.size() > kMostProtected) {
    return base::refuse("protect what programs obey in", draft.facts.work_folder,
                        "there are " + std::to_string(draft.facts.protected_paths.size()) + " such paths, more than " +
                            std::to_string(kMostProtected) + ", refusing",
                        remedy_for_many(draft.facts.protected_paths));
  }
  const std::vector<std::string> written = written_by_policy(draft);
  size_t copies = 0;
  std::vector<ProtectedPath> paths = draft.facts.protected_paths;
  for (const GitFolder& folder : draft.facts.git_folders) {
    paths.insert(paths.end(), folder.obeyed.begin(), folder.obeyed.end());
  }
  for (const ProtectedPath& path : paths) {
    // What is hidden is not to be read either.
    const bool hidden = path.treatment == ProtectedPath::Treatment::kMask && draft.table.shows(path.path);
    if (path.path == draft.facts.work_folder || (!hidden && !draft.table.writes(path.path))) continue;
    // Its own mount, made for another reason, is as strict or was asked for by name.
    if (draft.table.at(path.path) != nullptr) continue;
    if (std::ranges::find(written, path.path) != written.end()) continue;
    const MountKind kind = kind_of(path, copies < kMostPrivate);
    if (kind == MountKind::kPrivate) ++copies;
    draft.table.add(
        {.kind = kind, .target = path.path, .link = path.kind == ProtectedPath::Kind::kLink, .reason = path.reason});
    keep_written(draft, path.path, written);
  }
  for (const std::string& pattern : draft.policy.files.approve) {
    draft.weakenings.push_back("approve '" + pattern + "': the agent can make and change what programs obey there");
  }
  for (const auto& [path, leader] : draft.facts.awaited) {
    draft.weakenings.push_back("'" + leader + "' leads to '" + path +
                               "', where nothing is: what the agent makes there is obeyed until the session ends");
  }
  for (const std::string& leader : draft.facts.obeyed_whole) {
    draft.weakenings.push_back("'" + leader + "' leads to the work folder: what the agent makes there is obeyed by it");
  }
  if (!draft.facts.unseen_folders.empty()) {
    draft.notes.push_back("'" + draft.facts.unseen_folders.front() + "'" +
                          (draft.facts.unseen_folders.size() > 1 ? " and others" : "") +
                          " could not be looked into: what programs obey in there is not protected");
  }
  return {};
}

void hold_in_place(Draft& draft) {
  std::vector<std::string> folders = draft.facts.held;
  for (const std::string& path : draft.held) {
    for (std::string at = base::parent_of(path); at != "/"; at = base::parent_of(at)) folders.push_back(at);
  }
  // Those above first: what is written in one is told by the mounts above it.
  std::ranges::sort(folders);
  for (const std::string& at : folders) {
    std::optional<std::string> source = draft.table.written_at(at);
    if (draft.table.at(at) != nullptr || !source) continue;
    draft.table.add({.target = at,
                     .source = std::move(*source),
                     .writable = true,
                     .idmap = draft.identity.idmap,
                     .reason = "so that what is obeyed or hidden in it stays where it is"});
  }
}

}  // namespace belljar::plan
