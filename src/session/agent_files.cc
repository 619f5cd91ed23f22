#include "session/agent_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "plan/agent_files.h"
#include "workspace/host_file.h"

namespace belljar::session {
namespace {

using workspace::KeptFile;

KeptFile::Kind kind_of(plan::KeptKind kind) {
  switch (kind) {
    case plan::KeptKind::kLogin:
      return KeptFile::Kind::kLogin;
    case plan::KeptKind::kState:
      return KeptFile::Kind::kState;
    case plan::KeptKind::kHistory:
      return KeptFile::Kind::kHistory;
    case plan::KeptKind::kForbidden:
      break;
  }
  return KeptFile::Kind::kForbidden;
}

}  // namespace

std::optional<std::string> agent_folder(const policy::Agent& agent, const std::string& home, const std::string& start) {
  const auto marker =
      std::ranges::find_if(agent.obeyed, [](const std::string& text) { return text.ends_with(plan::kFolderMarker); });
  if (marker == agent.obeyed.end() || home.empty() || !marker->starts_with("~/")) return std::nullopt;
  const std::string name = plan::folder_name(start);
  const std::string folders = home + marker->substr(1, marker->size() - plan::kFolderMarker.size() - 1) + "/";
  const std::string file(plan::kFolderMarker.substr(plan::kFolderMarker.rfind('/')));
  std::optional<std::string> free;
  for (int number = 0; number < 100; ++number) {
    std::string one = number == 0 ? name : name + "-" + std::to_string(number);
    const auto text = base::read_regular_file(folders + one + file, PATH_MAX, false);
    if (text && (*text == start || *text == start + "\n")) return one;
    if (!free && !text && text.error().code == ENOENT) free = std::move(one);
  }
  return free.value_or("");
}

base::Status make_caches(const plan::Plan& plan) {
  for (const std::string& path : plan.caches) {
    auto folder = workspace::open_host_folder(path, true);
    if (!folder) {
      folder.error().hint = "set XDG_CACHE_HOME to a folder you may write, or files.toolchains = \"none\"";
      return std::unexpected(std::move(folder).error());
    }
    if (::geteuid() != 0) continue;
    // Without it the guest cannot write there, and says so itself.
    (void)!::fchownat(folder->get(), "", plan.identity.disk_uid, plan.identity.disk_gid, AT_EMPTY_PATH);
  }
  return {};
}

base::Result<workspace::KeptFiles> open_agent_files(const plan::Plan& plan) {
  // By the agent's own, a guest could claim another project's history. Where it cannot be made, no history can be
  // either.
  if (plan.folder_marker && workspace::open_host_folder(base::parent_of(plan.folder_marker->path), true)) {
    (void)workspace::replace_on_host(plan.folder_marker->path, plan.folder_marker->text, {});
  }
  std::vector<KeptFile> files;
  for (const plan::Kept& kept : plan.kept) {
    if (!base::is_within(kept.inside, plan.private_home)) continue;
    files.push_back({kind_of(kept.kind), kept.path, kept.inside.substr(plan.private_home.size() + 1), kept.keys});
  }
  return workspace::KeptFiles::open(std::move(files));
}

tiers::jail::Copies copies_of(const plan::Plan& plan, const workspace::KeptFiles& files) {
  tiers::jail::Copies out;
  for (const auto& [inside, content] : files.copies()) out.emplace(plan.private_home + "/" + inside, content);
  return out;
}

workspace::Work agent_files_work(const plan::Plan& plan, const tiers::jail::Program& program,
                                 workspace::KeptFiles files) {
  auto shared = std::make_shared<const workspace::KeptFiles>(std::move(files));
  // Bubblewrap and engines make a tmpfs for the home alone, and that is what is handed out.
  const bool alone = plan.mode == policy::Mode::kBwrap || plan.mode == policy::Mode::kDocker;
  const std::string home = alone ? std::string(".") : tiers::jail::scratch_folder(program, plan.private_home);
  const auto run = [shared, home](int scratch) -> base::Result<workspace::Settled> {
    BELLJAR_ASSIGN(const base::Fd folder,
                   base::open_resolved(scratch, home, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS));
    return shared->settle(folder.get());
  };
  std::string record;
  for (const plan::Kept& kept : plan.kept) {
    if (kept.kind == plan::KeptKind::kForbidden) record += kept.path + '\0';
  }
  return {.name = kAgentFilesWork, .record = std::move(record), .descriptors = {}, .run = run};
}

base::Result<workspace::Settled> redo_agent_files(std::string_view record) {
  std::vector<KeptFile> files;
  for (const std::string_view path : base::split(record, '\0')) {
    if (base::normal_path(path) == path && !path.empty()) {
      files.push_back({KeptFile::Kind::kForbidden, std::string(path), {}, {}});
    }
  }
  BELLJAR_ASSIGN(const workspace::KeptFiles kept, workspace::KeptFiles::open(std::move(files)));
  workspace::Settled out = kept.settle(-1);
  out.add_note("the agent's copies of its login and state were lost with the session; the host's are as they were");
  return out;
}

}  // namespace belljar::session
