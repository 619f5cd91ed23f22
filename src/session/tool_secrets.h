// Looking for files that may hold a login in the folders of toolchains.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace belljar::session {

struct ToolSecrets {
  std::vector<std::string> files;   // paths below the roots
  std::vector<std::string> unseen;  // the roots that hold more entries than were looked at
};

// Files that plan::is_tool_secret() names near the top of each of `roots` (real paths of folders), where tools put
// their settings: four levels of folders, without those that only hold programs, such as `lib`. Version managers keep
// whole system trees there, so at most `most_entries` entries of each root are looked at; a root with more is in
// `unseen`. No link is followed.
[[nodiscard]] ToolSecrets find_tool_secrets(const std::vector<std::string>& roots, size_t most_entries = 50'000);

}  // namespace belljar::session
