// A checkout as an archive, by Belljar itself: nothing of it is run, no link is followed, and what an archive would
// make something else of is refused by its path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace belljar::workspace {

enum class TreeKind : uint8_t {
  kWork,      // a checkout: links that stay in it, no hard links, nothing special, no LFS pointers. Its `.git` becomes
              // an empty folder
  kMetadata,  // a repository's `.git`: files and folders alone; no alternates, no submodules
};

struct TreeSize {
  uint64_t bytes = 0;  // of content, each file in whole pages: what a tmpfs takes for it
  uint64_t files = 0;  // entries of all kinds
};

// Where an archive goes.
class TreeSink {
 public:
  TreeSink() = default;
  TreeSink(const TreeSink&) = delete;
  TreeSink& operator=(const TreeSink&) = delete;
  virtual ~TreeSink() = default;
  virtual base::Status write(std::string_view bytes) = 0;
  // `size` bytes of `file` from its present offset; it moves on. An error when the file has fewer.
  virtual base::Status send(int file, uint64_t size) = 0;
};

// Looks at every entry below `folder` (a descriptor, not used up; `path` is for messages) as write_tree() would.
[[nodiscard]] base::Result<TreeSize> measure_tree(int folder, std::string_view path, TreeKind kind,
                                                  const base::Deadline& deadline);

// Writes it as a tar archive: modes are 0755 for folders and what its owner may execute, else 0644; the time of last
// change is kept. Refuses an entry that is not as kind says, and a file that changes meanwhile.
[[nodiscard]] base::Status write_tree(int folder, std::string_view path, TreeKind kind, TreeSink& sink,
                                      const base::Deadline& deadline);

// A link at `link` (relative to the checkout) to `target` stays in the checkout: relative, `..` only in front, and not
// above it. Pure: each name on its way is a folder or again such a link.
[[nodiscard]] bool stays_inside(std::string_view link, std::string_view target);

}  // namespace belljar::workspace
