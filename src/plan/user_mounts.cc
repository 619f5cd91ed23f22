#include "plan/user_mounts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/path.h"
#include "plan/agent_files.h"
#include "plan/identity.h"
#include "plan/program.h"
#include "plan/special_files.h"
#include "plan/system_mounts.h"

namespace belljar::plan {
namespace {

constexpr std::array kSharedScratch = {"/tmp", "/var/tmp"};

// Why a guest may not read the whole of `path`, or empty.
std::string never_readable(const Draft& draft, std::string_view path) {
  if (path == "/") return "it is the root folder";
  if (base::is_within(draft.real_home, path)) return "every login and key of the home would be in it";
  for (const char* tree : {"/proc", "/sys", "/dev"}) {
    if (base::is_within(path, tree)) return "the guest has its own, or none";
  }
  if (base::is_within("/run/user", path) || base::parent_of(path) == "/run/user") {
    return "the sockets of the host's services are in it";
  }
  return {};
}

// An agent of an earlier session may have put a link where the policy names a folder, to be given what lies behind it.
base::Status refuse_guests_link(const Draft& draft, const std::string& list, const std::string& text,
                                const PathFact& fact, bool write) {
  const LinkFact* link = draft.table.made_by_guest(fact.links);
  if (link == nullptr || (write ? draft.table.writes(fact.real) : draft.table.shows(fact.real))) return {};
  return base::refuse(
      list, text,
      "the link '" + link->path + "' lies in a folder the agent can write, and leads to '" + fact.real + "', refusing",
      "name what it leads to");
}

// The file of the policy that `path` names, checked for what holds for reading and writing alike.
base::Result<PathFact> policy_path(const Draft& draft, const char* list, const std::string& text, std::string& path) {
  BELLJAR_ASSIGN(path, expand_path(text, draft.facts.home, draft.facts.work_folder));
  PathFact fact = draft.fact(path);
  if (fact.kind == FileKind::kAbsent) {
    return base::refuse(list, text, "there is no '" + path + "', refusing", "create it, or take it out of the policy");
  }
  if (fact.kind == FileKind::kOther) {
    return base::refuse(list, text, "it is a device, refusing", "name a file or a folder");
  }
  if (fact.kind == FileKind::kSocket && is_engine_socket(fact.real, draft.facts.environment)) {
    return base::refuse(list, text, "who reaches a container engine is root of the host, refusing",
                        "give the agent what the engine would make instead");
  }
  BELLJAR_TRY(refuse_guests_link(draft, list, text, fact, std::string_view(list) == "files.write"));
  return fact;
}

base::Status add_write(Draft& draft, const std::string& text) {
  std::string path;
  BELLJAR_ASSIGN(const PathFact fact, policy_path(draft, "files.write", text, path));
  if (const std::string why = never_writable(draft, fact.real); !why.empty()) {
    return base::refuse("files.write", text, why + ", refusing", "name the folder inside it that the agent needs");
  }
  if (draft.policy.git == policy::GitAccess::kRead && base::is_within(fact.real, draft.facts.work_folder + "/.git")) {
    return base::refuse("files.write", text, "git = \"read\" keeps '.git' read-only, refusing",
                        "set git = \"write\", or take the path out");
  }
  if (const std::string why = unmappable(draft, fact); !why.empty()) {
    return base::refuse("files.write", text, why + ", refusing", "start belljar as the owner of both");
  }
  draft.table.add_links(fact.links, "leads to " + text);
  if (draft.table.writes(fact.real)) return {};
  draft.table.add({.target = fact.real,
                   .source = fact.real,
                   .writable = true,
                   .idmap = draft.identity.idmap,
                   .reason = std::string(kWriteReason)});
  return {};
}

base::Status add_read(Draft& draft, const std::string& text, const std::vector<std::string>& written) {
  std::string path;
  BELLJAR_ASSIGN(const PathFact fact, policy_path(draft, "files.read", text, path));
  if (const std::string why = never_readable(draft, fact.real); !why.empty()) {
    return base::refuse("files.read", text, why + ", refusing", "name the file or folder inside it that is needed");
  }
  if (fact.real == draft.facts.work_folder || std::ranges::find(written, fact.real) != written.end()) {
    return base::refuse("files.read", text, "the same path is writable in this launch, refusing",
                        "take it out of one of the two");
  }
  draft.table.add_links(fact.links, "leads to " + text);
  const Mount* mask = draft.table.covering(fact.real);
  if (mask != nullptr && mask->kind == MountKind::kMask && mask->target != fact.real) {
    return base::refuse("files.read", text, "it lies in '" + mask->target + "', which is hidden, refusing",
                        "name that folder itself");
  }
  if (draft.table.writes(fact.real) && draft.table.at(fact.real) == nullptr) {
    draft.held.push_back(fact.real);
    draft.table.add({.kind = MountKind::kReadOnly, .target = fact.real, .reason = "files.read of the policy"});
    return {};
  }
  if (draft.table.shows(fact.real) && draft.table.at(fact.real) == nullptr) return {};
  const bool idmap = draft.maps(fact);
  draft.table.add({.target = fact.real, .source = fact.real, .idmap = idmap, .reason = "files.read of the policy"});
  const mode_t others = fact.kind == FileKind::kFolder ? 05 : 04;
  if (draft.facts.root && fact.uid != draft.identity.host_uid && !idmap && (fact.mode & others) != others) {
    draft.notes.push_back("the agent cannot read '" + fact.real + "': it belongs to user " + std::to_string(fact.uid) +
                          " and is not open to others");
  }
  return {};
}

base::Status hide_path(Draft& draft, const std::string& text) {
  BELLJAR_ASSIGN(const std::string path, expand_path(text, draft.facts.home, draft.facts.work_folder));
  const PathFact fact = draft.fact(path);
  const auto contradiction = [&](const std::string& other) {
    return base::refuse("files.hide", text, "'" + other + "' lies in it and is needed by this launch, refusing",
                        "hide a smaller part, or take the other path out");
  };
  if (base::is_within(draft.facts.work_folder, fact.real)) return contradiction(draft.facts.work_folder);
  for (const ProgramFile& file : draft.facts.program.files) {
    if (base::is_within(file.file.real, fact.real)) return contradiction(file.file.real);
  }
  const Mount* here = draft.table.at(fact.real);
  if (here != nullptr && here->kind == MountKind::kBind && (fact.real == "/opt" || fact.real == "/nix")) {
    draft.table.remove(fact.real);
    here = nullptr;
  }
  if (here != nullptr && here->kind != MountKind::kMask && here->kind != MountKind::kReadOnly) {
    return contradiction(fact.real);
  }
  if (const Mount* below = draft.table.below(fact.real); below != nullptr && below->kind != MountKind::kMask) {
    return contradiction(below->target);
  }
  if (!draft.table.shows(fact.real)) return {};
  if (fact.shut) {
    return base::refuse("files.hide", text, "it cannot be looked at, since a folder above it is shut, refusing",
                        "open the folder (chmod u+rx), or take the path out");
  }
  if (fact.kind == FileKind::kAbsent) {
    if (draft.table.writes(fact.real)) {
      draft.notes.push_back("files.hide '" + text +
                            "': there is nothing now, so what the agent makes there is not hidden");
    }
    return {};
  }
  draft.held.push_back(fact.real);
  draft.table.add({.kind = MountKind::kMask, .target = fact.real, .reason = "files.hide of the policy"});
  return {};
}

}  // namespace

std::string never_writable(const Draft& draft, std::string_view path) {
  if (path == "/") return "it is the root folder";
  if (path == draft.real_home) return "it is the home, with every login and key in it";
  if (base::is_within(draft.real_home, path)) return "the home lies in it, with every login and key";
  if (is_system_path(path)) return "it belongs to the system";
  for (const char* scratch : kSharedScratch) {
    if (base::is_within(scratch, path)) return "programs of the host share it; the guest has its own";
  }
  return {};
}

std::string unmappable(const Draft& draft, const PathFact& fact) {
  const Identity& identity = draft.identity;
  if (!draft.facts.root) return {};
  if (fact.uid != identity.disk_uid) {
    return "it belongs to user " + std::to_string(fact.uid) + ", the work folder to user " +
           std::to_string(identity.disk_uid);
  }
  if (identity.idmap && !fact.idmap_possible) return "its file system cannot be mounted with an id map";
  return {};
}

void add_home(Draft& draft) {
  const std::string& home = draft.facts.home;
  const PathFact fact = draft.fact(home);
  const bool unusable = home.empty() || fact.real == "/" || is_system_path(fact.real) ||
                        (draft.table.shows(fact.real) && fact.kind != FileKind::kFolder);
  if (unusable) {
    draft.own_home = false;
    draft.home = draft.real_home = "/home/agent";
    draft.notes.push_back("the home '" + home + "' cannot be private: the guest's is '/home/agent'");
  } else {
    draft.home = home;
    draft.real_home = fact.real;
    draft.table.add_links(fact.links, "leads to the home");
    draft.shared_home = draft.policy.files.allow_home && base::is_within(fact.real, draft.facts.work_folder);
    if (draft.shared_home) return;
  }
  draft.table.add({.kind = MountKind::kScratch,
                   .target = draft.real_home,
                   .writable = true,
                   .reason = "private home, empty, gone at the end"});
}

base::Status add_work_folder(Draft& draft) {
  const std::string& folder = draft.facts.work_folder;
  if (base::normal_path(folder) != folder) {
    return base::refuse("seal work folder", folder, "it is not a real path, refusing");
  }
  if (const std::string why = never_writable(draft, folder); !why.empty()) {
    const bool around_home = base::is_within(draft.real_home, folder) && folder != "/" && !is_system_path(folder);
    if (!around_home || !draft.shared_home) {
      return base::refuse(
          "seal work folder", folder, why + ", refusing",
          std::string("start belljar in the folder of a project") + (around_home ? ", or say --allow-home" : ""));
    }
    draft.weakenings.push_back("allow_home = true: the agent gets '" + folder +
                               "' as a whole: every login and key of the home, and what your programs obey there");
  }
  if (is_credential(folder, draft.real_home)) {
    return base::refuse("seal work folder", folder, "credentials are kept there, refusing",
                        "start belljar in the folder of a project");
  }
  if (draft.fact(folder).kind != FileKind::kFolder) {
    return base::refuse("seal work folder", folder, "it is not a folder, refusing");
  }
  BELLJAR_ASSIGN(draft.identity, make_identity(draft.facts));
  draft.table.add({.target = folder,
                   .source = folder,
                   .writable = true,
                   .idmap = draft.identity.idmap,
                   .reason = "the work folder"});
  return {};
}

base::Status add_config_folder(Draft& draft, const std::string& text) {
  const std::string agent = draft.policy.agent.name;
  BELLJAR_ASSIGN(const std::string path, expand_path(text, draft.facts.home, draft.facts.work_folder));
  const PathFact fact = draft.fact(path);
  if (fact.kind == FileKind::kAbsent) {
    draft.notes.push_back(text + " does not exist yet: what " + agent + " keeps there is gone after the session");
    return {};
  }
  if (fact.kind != FileKind::kFolder) {
    draft.notes.push_back(text + " is not a folder and was left out");
    return {};
  }
  if (const std::string why = never_writable(draft, fact.real); !why.empty()) {
    return base::refuse("agent " + agent, text, "it leads to '" + fact.real + "': " + why + ", refusing",
                        "make it a folder of its own");
  }
  BELLJAR_TRY(refuse_guests_link(draft, "agent " + agent, text, fact, true));
  if (const std::string why = unmappable(draft, fact); !why.empty()) {
    draft.notes.push_back(text + " was left out, so " + agent + " has no login or settings from there: " + why +
                          " (start belljar as the owner of both)");
    return {};
  }
  draft.table.add_links(fact.links, "leads to " + text);
  draft.table.add({.target = fact.real,
                   .source = fact.real,
                   .writable = true,
                   .idmap = draft.identity.idmap,
                   .reason = "login and settings of " + agent});
  draft.weakenings.push_back("config_dirs of agent " + agent + ": what it writes to '" + text +
                             "' any later run of it obeys, sealed or not");
  return {};
}

base::Status add_policy_files(Draft& draft) {
  std::vector<std::string> written;
  for (const std::string& text : draft.policy.files.write) {
    BELLJAR_TRY(add_write(draft, text));
    BELLJAR_ASSIGN(const std::string path, expand_path(text, draft.facts.home, draft.facts.work_folder));
    written.push_back(draft.fact(path).real);
  }
  for (const std::string& text : draft.policy.files.read) BELLJAR_TRY(add_read(draft, text, written));
  return {};
}

namespace {

// Hides what is Belljar's own in the home that the guest may write: every folder on the way becomes a mount of itself,
// which cannot be renamed.
void pin(Draft& draft, const std::string& own, const std::string& root) {
  for (std::string at = base::parent_of(own); at != root; at = base::parent_of(at)) {
    if (draft.table.at(at) != nullptr) continue;
    draft.table.add({.target = at,
                     .source = at,
                     .writable = true,
                     .idmap = draft.identity.idmap,
                     .reason = "so that belljar's own stays in it"});
  }
  draft.table.add({.kind = MountKind::kMask, .target = own, .reason = "belljar's own"});
}

// A program of Belljar's. It is there where it lies in the work folder (who works on Belljar builds it), or where the
// policy lets it be read.
base::Status hide_own_program(Draft& draft, const std::string& program) {
  if (!draft.table.writes(program)) {
    if (draft.table.at(program) == nullptr && draft.table.shows(program)) {
      draft.table.add({.kind = MountKind::kMask, .target = program, .reason = "belljar's own"});
    }
    return {};
  }
  if (!base::is_within(program, draft.facts.work_folder)) {
    return base::refuse("seal", draft.table.covering(program)->target,
                        "the agent could write belljar's own program '" + program + "', refusing",
                        "name another file, or a smaller folder");
  }
  if (draft.shared_home) {
    pin(draft, program, draft.facts.work_folder);
  } else {
    draft.weakenings.push_back("the agent can change belljar's own program '" + program +
                               "', which lies in the work folder: look before you start it again");
  }
  return {};
}

}  // namespace

base::Status hide_own_folders(Draft& draft) {
  for (const std::string& path : draft.facts.own_folders) {
    const PathFact fact = draft.fact(path);
    if (fact.kind == FileKind::kFile) {
      BELLJAR_TRY(hide_own_program(draft, fact.real));
      continue;
    }
    const Mount* here = draft.table.at(fact.real);
    const Mount* given = here != nullptr && here->kind != MountKind::kMask ? here : draft.table.below(fact.real);
    if (given != nullptr) {
      return base::refuse("seal", given->target, "it lies in belljar's own folder '" + fact.real + "', refusing",
                          "use another folder");
    }
    if (!draft.table.shows(fact.real)) continue;
    const std::string& root = draft.table.covering(fact.real)->target;
    const bool exists = fact.kind != FileKind::kAbsent;
    if (draft.shared_home && base::is_within(root, draft.facts.work_folder) && draft.table.writes(fact.real)) {
      draft.caches.push_back(fact.real);  // what is missing is made, so that the guest cannot
      pin(draft, fact.real, draft.facts.work_folder);
      continue;
    }
    // A folder between the two could be renamed away, mask and all, and made anew; a missing one simply made.
    if (draft.table.writes(fact.real) && !(exists && base::parent_of(fact.real) == root)) {
      return base::refuse("seal", root,
                          "the agent could write belljar's own folder '" + fact.real + "' in it, refusing",
                          "name a smaller folder");
    }
    if (exists) draft.table.add({.kind = MountKind::kMask, .target = fact.real, .reason = "belljar's own"});
  }
  return {};
}

base::Status add_hidden(Draft& draft) {
  for (const std::string& text : draft.policy.files.hide) BELLJAR_TRY(hide_path(draft, text));
  return {};
}

base::Result<std::string> start_folder(const Draft& draft) {
  const std::string& text = draft.request.chdir;
  BELLJAR_ASSIGN(const std::string path, start_folder(draft.facts, draft.request));
  if (text.empty()) return path;
  if (const Mount* here = draft.table.at(path)) {
    if (here->kind == MountKind::kScratch || here->kind == MountKind::kFolder) return path;
  }
  const PathFact fact = draft.fact(path);
  if (fact.kind != FileKind::kFolder) {
    return base::refuse("--chdir", text, "it is not a folder, refusing", "name a folder inside the work folder");
  }
  if (!draft.table.shows(fact.real)) {
    return base::refuse("--chdir", text, "the guest does not have it, refusing",
                        "name a folder inside the work folder, or add it with --read");
  }
  return fact.real;
}

}  // namespace belljar::plan
