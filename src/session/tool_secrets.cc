#include "session/tool_secrets.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "plan/toolchains.h"

namespace belljar::session {
namespace {

constexpr int kLevels = 4;

bool only_holds_programs(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kNames = {"lib",     "lib64", "libexec", "bin",         "share",
                                                             "include", "doc",   "man",     "node_modules"};
  return std::ranges::find(kNames, name) != kNames.end();
}

// Some file systems do not say it in readdir(3).
unsigned char type_of(DIR* folder, const dirent& entry) {
  struct stat found{};
  if (entry.d_type != DT_UNKNOWN) return entry.d_type;
  const int at = ::dirfd(folder);
  if (at < 0 || ::fstatat(at, entry.d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) return DT_UNKNOWN;
  return IFTODT(found.st_mode);
}

// False when there is more than `left` entries.
bool look_into(const std::string& root, size_t left, std::vector<std::string>& files) {
  std::vector<std::string> level{root};
  for (int depth = 0; depth < kLevels && !level.empty(); ++depth) {
    std::vector<std::string> next;
    for (const std::string& folder : level) {
      const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
      while (entries) {
        const dirent* entry = ::readdir(entries.get());
        if (entry == nullptr) break;
        const std::string_view name(static_cast<const char*>(entry->d_name));
        if (name == "." || name == "..") continue;
        if (left-- == 0) return false;
        const unsigned char type = type_of(entries.get(), *entry);
        if (type == DT_REG && plan::is_tool_secret(name)) files.push_back(folder + "/" + std::string(name));
        if (type == DT_DIR && !only_holds_programs(name)) next.push_back(folder + "/" + std::string(name));
      }
    }
    level = std::move(next);
  }
  return true;
}

}  // namespace

ToolSecrets find_tool_secrets(const std::vector<std::string>& roots, size_t most_entries) {
  ToolSecrets out;
  for (const std::string& root : roots) {
    if (!look_into(root, most_entries, out.files)) out.unseen.push_back(root);
  }
  return out;
}

}  // namespace belljar::session
