// The mounts of a plan while it is made: one per target, and what the guest would see at a path.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/facts.h"
#include "plan/plan.h"

namespace belljar::plan {

// Targets are real paths of the host in normal form, so that no mount is ever made through a link.
class MountTable {
 public:
  // Adds `mount`, in place of one that has the same target.
  void add(Mount mount);
  void remove(std::string_view target) { mounts_.erase(std::string(target)); }

  [[nodiscard]] const Mount* at(std::string_view target) const;
  // The mount that decides what is at `path`: the deepest at or above it. Never one of kind kReadOnly or
  // kPrivate.
  [[nodiscard]] const Mount* covering(std::string_view path) const;
  // True when the guest sees at `path` what the host has there.
  [[nodiscard]] bool shows(std::string_view path) const;
  // True when the guest may write at `path` what the host keeps.
  [[nodiscard]] bool writes(std::string_view path) const;
  // The path on the host of what the guest may write at `path`; none when it may not, or when that is scratch.
  [[nodiscard]] std::optional<std::string> written_at(std::string_view path) const;
  // Any mount strictly below `path`, or null.
  [[nodiscard]] const Mount* below(std::string_view path) const;

  // True when a bind or a link was put right into the folder `path`.
  [[nodiscard]] bool has_entry_in(std::string_view path) const;

  // The first of `links` that the guest, or one before it, could have made; or null.
  [[nodiscard]] const LinkFact* made_by_guest(const std::vector<LinkFact>& links) const;

  // Adds the links among `links` that the guest would not see otherwise.
  void add_links(const std::vector<LinkFact>& links, std::string_view reason);

  // Parents before children, masks last. Links and plain folders that a bind already shows are left out.
  [[nodiscard]] std::vector<Mount> in_order() const;

 private:
  std::map<std::string, Mount, std::less<>> mounts_;
};

}  // namespace belljar::plan
