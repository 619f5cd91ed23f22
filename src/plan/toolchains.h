// What people build with, found in the home; and the caches of the package managers and compilers, one set a project.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/draft.h"
#include "plan/facts.h"

namespace belljar::plan {

// Folders of the home, as `~/…`, that version managers and installers put programs in and nothing else.
[[nodiscard]] const std::vector<std::string_view>& toolchain_folders();

// The folder whose links people start programs by, as `~/…`. gather_facts() reports where each of them leads.
inline constexpr std::string_view kLinkFolder = "~/.local/bin";

// True for the name of a file in such a folder that may hold a login or a token: of npm, pip, cargo, git and their
// like.
[[nodiscard]] bool is_tool_secret(std::string_view name);

// Binds those that exist, read-only, and what the links in kLinkFolder lead to. One that would show credentials, or to
// which a guest could have led, is left out with a note.
void add_toolchains(Draft& draft);

// The guest's cache folders, writable: the project's own below Belljar's cache folder, which no other project's guest
// and nothing outside ever reads. Their places are added to the draft, to be made before the launch.
void add_caches(Draft& draft);

// The name of a project in the cache folder, of the real path of its work folder. No two paths have the same, and no
// name is inside another.
[[nodiscard]] std::string cache_name(std::string_view work_folder);

}  // namespace belljar::plan
