// /proc/self/mountinfo (proc_pid_mountinfo(5)).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace belljar::guest {

struct MountEntry {
  std::string path;  // as seen from the root, escapes undone
  std::string_view options;
  std::string_view type;

  [[nodiscard]] bool has(std::string_view option) const;
};

// The entries of `text`, which the views point into. A line that does not parse gives an entry with an empty path.
[[nodiscard]] std::vector<MountEntry> parse_mountinfo(std::string_view text);

}  // namespace belljar::guest
