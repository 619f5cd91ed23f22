// A plan while it is made. Only make_plan() and the steps it calls see this.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/facts.h"
#include "plan/mount_table.h"
#include "plan/plan.h"
#include "policy/policy.h"

namespace belljar::plan {

// Why a tree of the policy's is writable: it was asked for by name.
inline constexpr std::string_view kWriteReason = "files.write of the policy";

struct Draft {
  const policy::Policy& policy;
  const Facts& facts;
  const Request& request;

  std::string home{};        // HOME of the guest
  std::string real_home{};   // its real path; the same unless the person's home is reached through links
  bool own_home = true;      // it is at the person's own path, so `~/` means the same inside and outside
  bool shared_home = false;  // it is the person's own, in the work folder (files.allow_home)
  Identity identity{};
  MountTable table{};
  std::vector<std::string> weakenings{};
  std::vector<std::string> notes{};
  std::vector<Kept> kept{};
  std::optional<FolderMarker> folder_marker{};
  std::vector<std::string> caches{};
  std::vector<std::string> histories{};
  std::vector<std::string> held{};  // targets that stay where they are: hold_in_place()

  // True when a bind of what `file` describes is to go through the guest's id map.
  [[nodiscard]] bool maps(const PathFact& file) const {
    return identity.idmap && file.idmap_possible && file.uid == identity.disk_uid;
  }

  // The fact of an expanded path. Facts that lack it are a bug of the caller; it counts as absent.
  [[nodiscard]] PathFact fact(std::string_view path) const {
    const auto found = facts.paths.find(path);
    return found == facts.paths.end() ? PathFact{.real = std::string(path)} : found->second;
  }

  // What lies at a real path that the policy or the agent's description leads to.
  [[nodiscard]] FileKind kind_of(std::string_view real) const {
    for (const auto& [path, found] : facts.paths) {
      if (found.real == real) return found.kind;
    }
    return FileKind::kAbsent;
  }
};

}  // namespace belljar::plan
