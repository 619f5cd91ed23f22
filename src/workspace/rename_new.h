// A move that replaces nothing, on whatever file system.
#pragma once

namespace belljar::workspace {

// Moves `leaf` of the open folder `from` to `name` in the open folder `to`; nothing that is there is replaced. Returns
// 0 or an errno: EEXIST when the name is taken. Where the file system takes no RENAME_NOREPLACE (NFS and many in user
// space answer EINVAL, rename(2)) the name is looked for first, and what somebody else puts there in between is
// replaced: such a `to` has to be a folder in which nobody else makes that name.
[[nodiscard]] int rename_new(int from, const char* leaf, int to, const char* name);

}  // namespace belljar::workspace
