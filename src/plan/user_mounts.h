// What the guest gets of the person's own files. The steps are called in this order: each sees what the ones before it
// have put into the draft's table.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/draft.h"

namespace belljar::plan {

// The guest's private home, at the person's own path where that can be.
void add_home(Draft& draft);

// The work folder, writable at its real path. Refuses `/`, the home, what is above it, and the system's folders.
// Its owner decides who the guest is, so this step sets the identity too.
[[nodiscard]] base::Status add_work_folder(Draft& draft);

// A folder of the home that the agent may write as a whole, which is named as a weakening. What is missing or belongs
// to another user is left out with a note.
[[nodiscard]] base::Status add_config_folder(Draft& draft, const std::string& text);

// Why a guest may not write to the whole of `path`, or empty.
[[nodiscard]] std::string never_writable(const Draft& draft, std::string_view path);

// Why root's guest, who writes as the owner of the work folder, cannot be given a file of this owner and file system
// to write; or empty.
[[nodiscard]] std::string unmappable(const Draft& draft, const PathFact& fact);

// files.write and files.read. A path that is missing, special, or part of the system is refused; one in both lists
// too. A read path inside a writable tree makes that part read-only.
[[nodiscard]] base::Status add_policy_files(Draft& draft);

// `.git` of the work folder: read-only, or writable by the policy's named weakening.
[[nodiscard]] base::Status add_git(Draft& draft);

// Belljar's own folders out of sight. Refuses a bind through which a guest could write there.
[[nodiscard]] base::Status hide_own_folders(Draft& draft);

// files.hide. Refuses to hide what the same policy gives.
[[nodiscard]] base::Status add_hidden(Draft& draft);

// Where the command starts, as a path that exists in the guest.
[[nodiscard]] base::Result<std::string> start_folder(const Draft& draft);

}  // namespace belljar::plan
