// Following a path by hand, so that every link on the way is known.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "plan/facts.h"

namespace belljar::session {

// Looks at paths, each file at most once: what it tells is one picture of the machine, and cheap to ask for again.
class Walker {
 public:
  // With `ids`, facts say whether an id map is possible.
  explicit Walker(bool ids) : ids_(ids) {}

  // The fact of `path`, which must be absolute. At most 40 links are followed, as path_resolution(7) does; what cannot
  // be reached, for want of a file or of a permission, is absent.
  [[nodiscard]] plan::PathFact walk(const std::string& path);

  // True when there is something at `path`, if only a link. Links in the folders above count as folders.
  [[nodiscard]] bool exists(const std::string& path);

 private:
  struct Entry {
    bool exists = false;
    bool shut = false;  // nobody may say whether it exists
    uint32_t mode = 0;  // as in struct stat
    uid_t uid = 0;
    gid_t gid = 0;
    dev_t device = 0;
    std::string link;  // text of a link; empty when it cannot be read
  };

  const Entry& look(const std::string& path);
  bool can_map_ids(const std::string& path, dev_t device);

  bool ids_;
  std::unordered_map<std::string, Entry> entries_;
  std::map<dev_t, bool> devices_;
};

// The path that a file of git's names: its first line without `prefix`, relative to `folder`. None when the file cannot
// be read or says nothing of the kind.
[[nodiscard]] std::optional<std::string> path_named_by(const std::string& file, std::string_view prefix,
                                                       const std::string& folder);

// The type of the file system at `path`, for messages: "ext4", "overlay", or its number in hexadecimal.
[[nodiscard]] std::string file_system_name(const std::string& path);

}  // namespace belljar::session
