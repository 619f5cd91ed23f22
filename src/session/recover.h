// Sessions that nobody settled: launcher and settler were both killed, or the machine went down.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "workspace/settled.h"

namespace belljar::session {

// Does a workspace::Work from its record alone. Must bear being done twice.
struct KnownWork {
  std::string_view name;
  std::function<base::Result<workspace::Settled>(std::string_view record)> redo;
  // Of one that came to no end before: whether it is this time's to go on with it. Null: always.
  std::function<bool(std::string_view record)> due;
};

struct Recovered {
  std::string session;
  std::string work_folder;
  workspace::Settled settled;
  std::string settlement;  // the file that tells of it; empty when the agent had never started
};

// Does what is left of every session of the state folder whose processes are all gone, writes a settlement for each and
// removes its marker. Sessions that run are left alone, and so is what cannot be read: its error is among `errors`.
// Where there is no state folder there is nothing to recover.
struct Recovery {
  std::vector<Recovered> sessions;
  std::vector<base::Error> errors;
};
// `tell` is called before something is gone on with, which may take long.
[[nodiscard]] base::Result<Recovery> recover(
    const std::string& state_folder, std::span<const KnownWork> known,
    const std::function<void(const std::string& work_folder)>& tell = [](const std::string&) {});

// Removes what launchers have left in the state folder that were killed before their session had a marker, or while
// they wrote a file: what has a door whose launcher is dead at once, the rest when it is older than `age`, which is
// longer than any launch is at it. What cannot be removed is left to the next time.
void remove_remains(const std::string& state_folder, std::chrono::seconds age = std::chrono::minutes(1));

// A tree that the guest of a session that runs can write, since when (nanoseconds since 1970, by the clock of files'
// times).
struct LiveTree {
  std::string root;
  int64_t since = 0;
};
// Those of all sessions of the state folder. A session of which nothing can be read has the whole file system.
[[nodiscard]] std::vector<LiveTree> live_trees(const std::string& state_folder);

}  // namespace belljar::session
