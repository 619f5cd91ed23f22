// The launches that are kept, to start others like them: what is written at every launch of an agent. Two files of
// Belljar's own state folder, `launches` and, once that is full, the one before it, `launches.old`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "store/store.h"

namespace belljar::store {

// So many bytes at least are kept of what came last; the oldest go first.
inline constexpr int64_t kKeptLaunchBytes = int64_t{4} << 20U;

// Makes the folder (0700) and the file (0600) when they are missing; a folder that others may write to, or that belongs
// to somebody else, is refused. Returns before the disk has it: a power cut may take the last launches, no more.
[[nodiscard]] base::Status keep_launch(const std::string& state_folder, const Launch& launch);

// The last one that was kept under this id, here or in the store of an earlier version. What is not whole is passed
// over. An error when a newer version of Belljar kept it in a way that this one does not know.
[[nodiscard]] base::Result<std::optional<Launch>> kept_launch(const std::string& state_folder, const std::string& id);

}  // namespace belljar::store
