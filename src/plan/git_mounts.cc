// What the guest gets of the repository that its work folder belongs to.
#include <algorithm>
#include <string>

#include "base/path.h"
#include "plan/program.h"
#include "plan/user_mounts.h"

namespace belljar::plan {
namespace {

void read_only(Draft& draft, const std::string& target, const char* reason) {
  draft.table.add({.kind = MountKind::kReadOnly, .target = target, .reason = reason});
}

void add_bind(Draft& draft, const PathFact& fact, bool writable, const char* reason) {
  draft.table.add({.target = fact.real,
                   .source = fact.real,
                   .writable = writable,
                   .idmap = writable ? draft.identity.idmap : draft.maps(fact),
                   .reason = reason});
}

// Objects that lie in another repository, which `git clone --shared` and `--reference` leave there.
void add_alternates(Draft& draft, const GitFact& git) {
  for (const PathFact& fact : git.alternates) {
    if (is_private(fact.real, draft.real_home)) {
      draft.notes.push_back("objects in '" + fact.real + "' were left out: credentials lie beside them");
    } else if (!draft.table.shows(fact.real)) {
      add_bind(draft, fact, false, "more objects of the repository");
    }
  }
}

// The whole of a repository's folder, but for what runs commands in it. A mount point cannot be renamed, so the folder
// itself stays, and with it those parts.
base::Status add_written_repository(Draft& draft, const GitFact& git, const std::string& path) {
  if (git.has_links) {
    return base::refuse("git = \"write\"", draft.facts.work_folder,
                        "hooks or config of '" + path + "' is a link, which the agent could replace, refusing",
                        "make it a real folder or file, or set git = \"read\"");
  }
  draft.table.add(
      {.target = path, .source = path, .writable = true, .idmap = draft.identity.idmap, .reason = "git = \"write\""});
  if (git.has_hooks) read_only(draft, path + "/hooks", "what git executes");
  if (git.has_config) read_only(draft, path + "/config", "what git obeys");
  draft.weakenings.push_back("git = write: the agent can change history, refs and anything in '" + path +
                             "' but what git obeys; of that, what it makes anew is put away only at the end");
  return {};
}

base::Status refuse_write(const Draft& draft, const std::string& why) {
  return base::refuse("git = \"write\"", draft.facts.work_folder, why + ", refusing",
                      "set git = \"read\" and commit outside");
}

// Of a linked worktree: its own folder, objects and refs, which a commit writes. The rest of the common folder belongs
// to the main worktree and to the others, and stays as it is.
base::Status add_written_worktree(Draft& draft, const GitFact& git) {
  for (const PathFact& fact : git.shared) {
    const std::string_view name =
        std::string_view(fact.real).substr(std::min(git.common.real.size(), fact.real.size()));
    if (fact.kind == FileKind::kFolder && fact.links.empty()) {
      if (const std::string why = unmappable(draft, fact); !why.empty()) return refuse_write(draft, why);
      if (name == "/objects/info") continue;
      add_bind(draft, fact, true, "git = \"write\"");
    } else if (name == "/logs/refs") {
      draft.notes.push_back("'" + git.common.real +
                            "' has no logs of its refs: with core.logAllRefUpdates git cannot "
                            "commit in this worktree");
    } else {
      return refuse_write(draft, "'" + fact.real + "' is not a folder");
    }
  }
  // What names more folders of objects.
  read_only(draft, git.common.real + "/objects/info", "what git obeys");
  add_bind(draft, git.own, true, "git = \"write\": the worktree's own");
  draft.weakenings.push_back("git = write: the agent can change history and refs in '" + git.common.real +
                             "', for every worktree of it, and the state of this one in '" + git.own.real + "'");
  return {};
}

// `.git` is a file that names the repository.
base::Status add_repository_elsewhere(Draft& draft, const GitFact& git) {
  const bool write = draft.policy.git == policy::GitAccess::kWrite;
  if (is_private(git.common.real, draft.real_home)) {
    if (write) return refuse_write(draft, "credentials lie beside the repository '" + git.common.real + "'");
    draft.notes.push_back("the repository '" + git.common.real + "' was left out: credentials lie beside it");
    return {};
  }
  add_alternates(draft, git);
  if (write) {
    for (const PathFact* fact : {&git.common, &git.own}) {
      if (fact->kind == FileKind::kAbsent) continue;
      if (const std::string why = unmappable(draft, *fact); !why.empty()) return refuse_write(draft, why);
    }
    if (git.own.kind == FileKind::kAbsent) return add_written_repository(draft, git, git.common.real);
  }
  if (!draft.table.shows(git.common.real)) add_bind(draft, git.common, false, "repository of this worktree");
  return write ? add_written_worktree(draft, git) : base::Status{};
}

}  // namespace

base::Status add_git(Draft& draft) {
  const GitFact& git = draft.facts.git;
  const std::string path = draft.facts.work_folder + "/.git";
  const bool write = draft.policy.git == policy::GitAccess::kWrite;
  switch (git.kind) {
    case GitFact::Kind::kNone:
      draft.notes.push_back("the work folder has no '.git': one that the agent makes is not to be trusted");
      return {};
    case GitFact::Kind::kFolder:
      if (!write) {
        read_only(draft, path, "git = \"read\"");
        add_alternates(draft, git);
        return {};
      }
      add_alternates(draft, git);
      return add_written_repository(draft, git, path);
    case GitFact::Kind::kLink:
      if (write) {
        return base::refuse("git = \"write\"", draft.facts.work_folder, "'.git' is a link, refusing",
                            "set git = \"read\", or start in the folder it leads to");
      }
      if (base::is_within(git.common.real, draft.facts.work_folder) && git.common.real != draft.facts.work_folder &&
          git.common.kind != FileKind::kAbsent) {
        read_only(draft, git.common.real, "'.git' leads here");
      }
      draft.notes.push_back("'.git' is a link to '" + git.common.real + "': the agent can replace the link");
      return {};
    case GitFact::Kind::kWorktree:
      read_only(draft, path, "names the repository of this worktree");
      return add_repository_elsewhere(draft, git);
    case GitFact::Kind::kUnverified:
      read_only(draft, path, "names a repository elsewhere");
      draft.notes.push_back("'.git' names a repository that was left out: " + git.reason);
      return {};
  }
  return {};
}

}  // namespace belljar::plan
