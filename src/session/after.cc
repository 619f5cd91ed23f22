#include "session/after.h"

#include <fcntl.h>
#include <linux/openat2.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/path.h"
#include "plan/protected_mounts.h"
#include "session/agent_files.h"
#include "session/container.h"
#include "session/limits.h"
#include "session/state_folder.h"
#include "workspace/guard.h"

namespace belljar::session {
namespace {

constexpr const char* kGuardWork = "look for protected paths";

workspace::EntryKind kind_of(plan::ProtectedPath::Kind kind) {
  switch (kind) {
    case plan::ProtectedPath::Kind::kFolder:
      return workspace::EntryKind::kFolder;
    case plan::ProtectedPath::Kind::kFile:
      return workspace::EntryKind::kFile;
    case plan::ProtectedPath::Kind::kLink:
      return workspace::EntryKind::kLink;
    case plan::ProtectedPath::Kind::kOther:
      break;
  }
  return workspace::EntryKind::kOther;
}

workspace::GitFolder git_folder_of(const plan::GitFolder& folder) {
  workspace::GitFolder out{folder.whole, folder.tree,  folder.path, {folder.device, folder.inode, folder.born},
                           {},           folder.config};
  for (const plan::ProtectedPath& path : folder.obeyed) {
    workspace::Known known;
    known.path = path.path.substr(folder.path.size() + 1);
    known.kind = kind_of(path.kind);
    known.id = {path.device, path.inode, path.born};
    out.known.push_back(std::move(known));
  }
  return out;
}

// Of the tree `root`: the work folder, or another that the guest may write. `path` below it, relative.
std::string below(const std::string& root, const std::string& path) {
  return path == root ? std::string() : path.substr(root.size() + 1);
}

// The patterns of the work folder, for a tree around it.
std::vector<std::string> approved_in(const plan::Plan& plan, const std::string& tree) {
  std::vector<std::string> out;
  if (!base::is_within(plan.work_folder, tree)) return out;
  for (const std::string& pattern : plan.approved) out.push_back(below(tree, plan.work_folder) + "/" + pattern);
  return out;
}

base::Result<workspace::Guard> guard_of(const Launch& launch, const std::string& tree) {
  const bool work_folder = tree == launch.plan.work_folder;
  workspace::Guard guard;
  guard.root = tree;
  BELLJAR_ASSIGN(const base::Fd root,
                 base::open_resolved(AT_FDCWD, guard.root, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS));
  workspace::FileLook look;
  if (!workspace::look_at(root.get(), "", look)) return base::system_error("open", guard.root, errno);
  guard.id = look.id;
  for (const plan::ProtectedPath& path : launch.plan.protected_paths) {
    if (!base::is_within(path.path, tree)) continue;
    workspace::Known known;
    known.path = below(tree, path.path);
    known.name = path.repository ? workspace::NameKind::kGit : workspace::protected_name(base::name_of(path.path));
    known.kind = kind_of(path.kind);
    known.id = {path.device, path.inode, path.born};
    guard.known.push_back(std::move(known));
  }
  for (const std::string& path : launch.plan.watched) {
    if (base::is_within(path, tree)) guard.watched.push_back(below(tree, path));
  }
  // Belljar's caches of the project.
  for (const plan::Mount& mount : launch.plan.mounts) {
    const bool elsewhere = mount.kind == plan::MountKind::kBind && mount.writable && mount.source != mount.target;
    if (!elsewhere) continue;
    const bool cache = std::ranges::find(launch.plan.caches, mount.source) != launch.plan.caches.end();
    // Of caches the folder of all the project's, by which a link could lead there as well.
    guard.unswept.push_back(cache ? base::parent_of(base::parent_of(mount.source)) : mount.source);
  }
  for (tiers::jail::PrivateCopy& copy : tiers::jail::private_copies(launch.program)) {
    const bool own = base::is_within(copy.target, launch.plan.work_folder) == work_folder;
    if (own && base::is_within(copy.target, tree)) {
      guard.copies.push_back({std::move(copy.target), std::move(copy.upper)});
    }
  }
  guard.begun = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  if (work_folder) {
    guard.histories = launch.plan.histories;
    guard.approved = launch.plan.approved;
    for (const plan::GitFolder& folder : launch.plan.git_folders) guard.git_folders.push_back(git_folder_of(folder));
  } else {
    guard.approved = approved_in(launch.plan, tree);
  }
  guard.quarantine = quarantine_path(launch.state_folder);
  guard.session = launch.session;
  return guard;
}

base::Result<workspace::Work> guard_work(const Launch& launch, const std::string& tree) {
  BELLJAR_ASSIGN(workspace::Guard guard, guard_of(launch, tree));
  workspace::Work work;
  work.name = kGuardWork;
  work.record = workspace::encode(guard);
  if (work.record.size() > workspace::Work::kMostRecord) {
    return base::refuse("protect what programs obey in", guard.root, "there is too much of it, refusing",
                        plan::remedy_for_many(launch.plan.protected_paths));
  }
  work.run = [guard = std::move(guard)](int scratch) {
    return workspace::settle(guard, scratch, base::Deadline::after(workspace::kSettleTime));
  };
  return work;
}

bool concern_each_other(const std::string& root, const std::string& folder) {
  return folder.empty() || base::is_within(root, folder) || base::is_within(folder, root);
}

base::Result<workspace::Settled> redo_guard(std::string_view record, const std::string& folder) {
  BELLJAR_ASSIGN(const workspace::Guard guard, workspace::decode_guard(record));
  const bool all = concern_each_other(guard.root, folder);
  return workspace::settle(guard, -1, all ? base::Deadline() : base::Deadline::after(workspace::kSettleTime));
}

bool is_guard_due(std::string_view record, const std::string& folder) {
  const auto guard = workspace::decode_guard(record);
  return !guard || concern_each_other(guard->root, folder);
}

}  // namespace

base::Result<std::vector<workspace::Work>> works_after(const Launch& launch) {
  std::vector<workspace::Work> out;
  std::vector<std::string> trees{launch.plan.work_folder};
  trees.insert(trees.end(), launch.plan.swept.begin(), launch.plan.swept.end());
  for (const std::string& tree : trees) {
    BELLJAR_ASSIGN(workspace::Work work, guard_work(launch, tree));
    out.push_back(std::move(work));
  }
  if (!launch.plan.kept.empty()) out.push_back(agent_files_work(launch.plan, launch.program, launch.agent_files));
  return out;
}

std::vector<std::string> guarded_trees(std::span<const workspace::Work> works) {
  std::vector<std::string> out;
  for (const workspace::Work& work : works) {
    if (work.name != kGuardWork) continue;
    const auto guard = workspace::decode_guard(work.record);
    out.push_back(guard ? guard->root : "/");
  }
  return out;
}

std::vector<KnownWork> known_works(tiers::docker::Reach& reach, const std::string& folder) {
  return {{kGuardWork, [folder](std::string_view record) { return redo_guard(record, folder); },
           [folder](std::string_view record) { return is_guard_due(record, folder); }},
          {kAgentFilesWork, &redo_agent_files, {}},
          {kGroupRemoval, &remove_recorded_group, {}},
          {kContainerRemoval, [&](std::string_view record) { return remove_recorded_container(record, reach); }, {}}};
}

}  // namespace belljar::session
