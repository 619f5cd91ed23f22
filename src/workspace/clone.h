// A project's last commit in a folder of Belljar's own, from which a task's storage is filled.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/protected.h"
#include "workspace/tree_archive.h"

namespace belljar::workspace {

// As it is recorded with a task.
struct CloneRecord {
  std::string path{};    // of the clone's folder
  std::string token{};   // 32 random hex digits: what is bound to a clone is bound to this
  std::string commit{};  // the object id of the base, 40 or 64 hex digits
  std::string branch{};  // "main"
  // As they were made. Where a file system knows no time of birth, that part of them says nothing.
  FileId folder{};
  FileId metadata{};  // of its .git
};

[[nodiscard]] std::string encode(const CloneRecord& record);
[[nodiscard]] base::Result<CloneRecord> decode_clone(std::string_view record);

// One file, link or submodule of a commit.
struct BaseEntry {
  uint32_t mode = 0;  // git's: 0100644, 0100755, 0120000, 0160000
  std::string id{};   // of its blob
  uint64_t size = 0;
};
using BaseTree = std::map<std::string, BaseEntry, std::less<>>;

// Only make() and reopen() give one, so whoever has one knows that Belljar made what is in the folder: fetched by git
// from the project, checked out without filters or attributes, and looked through. Not to be copied. The folder is
// removed by remove(), not by the object's end.
class Clone {
 public:
  // Makes the folder `place`, which must not exist, and whose parent must be this user's alone. Takes HEAD of the
  // repository at `project` with its history, not what is not committed. Refuses a project without a commit; submodules
  // and Git LFS pointers by path; and what write_tree() refuses.
  [[nodiscard]] static base::Result<Clone> make(const std::string& project, const std::string& place,
                                                const base::Deadline& deadline);
  // One that was recorded. Refused when another folder stands at its path now.
  [[nodiscard]] static base::Result<Clone> reopen(CloneRecord record);

  [[nodiscard]] const CloneRecord& record() const { return record_; }
  // Both folders by descriptor (O_PATH's rights are not enough to read: these can).
  [[nodiscard]] int folder() const { return folder_.get(); }
  [[nodiscard]] int metadata() const { return metadata_.get(); }

  // Refuses when what stands at the clone's path, or at its .git, is not what was made there.
  [[nodiscard]] base::Status verify() const;
  // What checkout and metadata take.
  [[nodiscard]] base::Result<TreeSize> measure(TreeKind kind, const base::Deadline& deadline) const;
  [[nodiscard]] base::Status write(TreeKind kind, TreeSink& sink, const base::Deadline& deadline) const;
  // Removes the checkout, once it is seeded; the metadata stays, for what comes back.
  [[nodiscard]] base::Status discard_checkout() const;
  // The base commit's files, as git lists them.
  [[nodiscard]] base::Result<BaseTree> tree(const base::Deadline& deadline) const;

 private:
  Clone(CloneRecord record, base::Fd folder, base::Fd metadata)
      : record_(std::move(record)), folder_(std::move(folder)), metadata_(std::move(metadata)) {}
  [[nodiscard]] static base::Result<Clone> open(CloneRecord record);

  CloneRecord record_;
  base::Fd folder_;
  base::Fd metadata_;
};

}  // namespace belljar::workspace
