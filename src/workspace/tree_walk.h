// Looking at every entry of a tree that somebody hostile may have made, and may be changing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"

namespace belljar::workspace {

struct TreeEntry {
  int folder = -1;               // descriptor of the folder it lies in, open during the call
  std::string_view folder_path;  // relative to the root of the walk; empty for the root
  std::string_view name;
  unsigned char type = 0;  // DT_ of dirent.h, never DT_UNKNOWN

  [[nodiscard]] std::string path() const {
    return folder_path.empty() ? std::string(name) : std::string(folder_path) + "/" + std::string(name);
  }
};

class TreeVisitor {
 public:
  TreeVisitor() = default;
  TreeVisitor(const TreeVisitor&) = delete;
  TreeVisitor& operator=(const TreeVisitor&) = delete;
  virtual ~TreeVisitor() = default;

  // True to look into it, when it is a folder.
  virtual bool on_entry(const TreeEntry& entry) = 0;
  // A folder with the shape of a git folder without being called `.git`: `HEAD` with `objects` and `refs`, or with
  // `commondir`. True to look into it further.
  virtual bool on_repository(int folder, std::string_view path) = 0;
  // The folder `name` of `parent`, at `path`, cannot be looked into for its mode. False: on_unseen() is called.
  virtual bool on_shut(int /*parent*/, const char* /*name*/, std::string_view /*path*/) { return false; }
  // What lies in the folder `path` was not looked at, for the errno `code`; for a folder that was moved away meanwhile
  // ESTALE, for one that is too deep ELOOP.
  virtual void on_unseen(std::string_view path, int code) = 0;
};

// A folder, open for reading, and its entries can be looked up. One of the caller's own that its mode keeps the caller
// out of (only its owner can have done that, and the guest of an ordinary user is that owner) is opened all the same:
// its mode is put back when the object goes.
class OpenedFolder {
 public:
  OpenedFolder() = default;
  OpenedFolder(OpenedFolder&&) = default;
  OpenedFolder& operator=(OpenedFolder&& other) noexcept;
  OpenedFolder(const OpenedFolder&) = delete;
  OpenedFolder& operator=(const OpenedFolder&) = delete;
  ~OpenedFolder() { close(); }

  // The folder `name` of the open folder `parent`, no link. Invalid, with errno, when it cannot be had; `force_own`
  // unset takes modes as they are.
  [[nodiscard]] static OpenedFolder open(int parent, const char* name, bool force_own);
  // Another way to the folder behind `descriptor`, which may be an O_PATH one.
  [[nodiscard]] static OpenedFolder reopen(int descriptor, bool force_own);

  explicit operator bool() const { return fd_.valid(); }
  [[nodiscard]] int fd() const { return fd_.get(); }
  // Puts the mode back and closes.
  void close();
  // Closes and leaves the mode open: for take_back().
  [[nodiscard]] std::optional<mode_t> leave();
  // The same folder again, opened as `fd`; its mode has yet to be put back to `before`.
  void take_back(base::Fd fd, std::optional<mode_t> before);

 private:
  void open_up(int descriptor);
  void close_keeping_errno();

  base::Fd fd_;
  std::optional<mode_t> before_;
};

struct WalkOptions {
  base::Deadline deadline{};
  // As in OpenedFolder, while the walk is in the folder.
  bool force_own = false;
};

// Walks the tree below the open folder `root` (not used up; O_PATH will do), folder by folder, mounts below it
// included. No link is followed; at most 64 descriptors and 1 MiB are in use at a time, however deep or wide the tree
// is (down to 100,000 levels). An entry may be renamed or removed by the visitor. ETIME when the deadline has passed
// first; else an error only when the root itself cannot be read.
[[nodiscard]] base::Status walk_tree(int root, TreeVisitor& visitor, const WalkOptions& options);

}  // namespace belljar::workspace
