// The protected paths that a work folder has when a launch begins.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/pack.h"
#include "workspace/protected_name.h"
#include "workspace/tree_walk.h"

namespace belljar::workspace {

// Which file it is. A number that is free again goes to the next file, so its time of birth counts too, where the file
// system keeps one (statx(2), STATX_BTIME).
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t born = 0;  // nanoseconds since 1970; 0 when not known
  auto operator<=>(const FileId&) const = default;
};

struct FileLook {
  FileId id;
  mode_t mode = 0;
  uint64_t links = 0;
  int64_t changed = 0;  // nanoseconds since 1970; no program can set it (inode(7), ctime)
};
// What lies at `name` in the open folder, itself when it is a link; with an empty name the folder. False with errno.
[[nodiscard]] bool look_at(int folder, const char* name, FileLook& out);

// A file's identity within a record (base/pack.h).
void pack_id(std::string& out, const FileId& id);
[[nodiscard]] FileId unpack_id(base::Unpacker& in);

enum class EntryKind : uint8_t { kFolder, kFile, kLink, kOther };

// One protected path that exists. `path` is relative to the work folder; empty for the work folder itself, when that
// has the shape of a repository.
struct Known {
  std::string path;
  NameKind name = NameKind::kNone;
  EntryKind kind = EntryKind::kOther;
  bool repository = false;  // by its shape, whatever it is called
  FileId id;

  bool operator==(const Known&) const = default;
};

// `pattern` is a path relative to the work folder; in it `*` is any run of characters of one name, and a component `**`
// is any number of names, none included. Letters count as they are.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view path);
[[nodiscard]] bool is_approved(const std::vector<std::string>& patterns, std::string_view path);

// A socket or FIFO, by its path relative to where the search began.
struct Special {
  std::string path;
  bool socket = false;

  bool operator==(const Special&) const = default;
};

struct Protected {
  std::vector<Known> known;
  std::vector<Special> special;     // in protected folders too, but for the objects of git; sorted by path
  std::vector<Known> shut;          // folders whose mode keeps the caller from looking into them
  std::vector<std::string> unseen;  // others that could not be looked into; at most 100
  uint64_t entries = 0;             // how many there are in the work folder
};

// Everything protected below the open folder `root`, but what `approved` names. Of what lies in there, which is
// protected as a whole, it tells sockets and FIFOs only.
[[nodiscard]] base::Result<Protected> find_protected(int root, const std::vector<std::string>& approved);

// Links, sockets, FIFOs and devices below the open git folder `root`, at any depth; of one that is the work folder
// itself only in what kept_by_git() tells.
[[nodiscard]] base::Result<std::vector<Known>> find_odd_in_git(int root, bool work_folder);

// Paths are relative to the folder, and sorted.
struct Elsewhere {
  std::vector<std::string> links;
  std::vector<std::string> names;  // of files that have another one
  bool complete = true;            // false: of more entries than asked for, those in folders were not looked at
};

struct ElsewhereOptions {
  bool settings = false;    // not in checkouts (`worktrees` in it) and installed packages
  bool names = true;        // else only links, which need no look at each file
  size_t most = SIZE_MAX;   // entries
  size_t depth = SIZE_MAX;  // 1: of the folder itself only; what is deeper is left out by intent
};

// What in the open folder `root` may be kept elsewhere.
[[nodiscard]] base::Result<Elsewhere> find_elsewhere(int root, const ElsewhereOptions& options);

// The names below the open folder `root` of the regular files `files`.
[[nodiscard]] base::Result<std::vector<std::pair<std::string, FileId>>> find_names(int root,
                                                                                   const std::set<FileId>& files);

// Every socket and FIFO below the open folder `root`, sorted by path.
[[nodiscard]] base::Result<std::vector<Special>> find_special(int root);

}  // namespace belljar::workspace
