// A manifest's changes as a commit on the base, in a repository that is made for it and gone after.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "workspace/clone.h"
#include "workspace/private_git.h"
#include "workspace/work_manifest.h"

namespace belljar::workspace {

struct CommitWords {
  std::string branch{};  // what the bundle calls it: "belljar/0123456789abcdef"
  std::string name;      // of author and committer
  std::string mail;
  std::string message;
  int64_t time = 0;  // seconds since 1970, UTC
};

// The repository is bare and new, borrows the base's objects from the clone, and is filled by git-fast-import(1) alone:
// no working tree, index, hook, filter or attribute takes part.
class WorkCommit {
 public:
  // In the new folder `place`, below a private one. Refuses a manifest with objections, naming the first, and one
  // without a change.
  [[nodiscard]] static base::Result<WorkCommit> make(const Clone& clone, const Manifest& manifest,
                                                     const CommitWords& words, const std::string& place,
                                                     const base::Deadline& deadline);
  WorkCommit(WorkCommit&& other) noexcept;
  WorkCommit& operator=(WorkCommit&&) = delete;
  WorkCommit(const WorkCommit&) = delete;
  WorkCommit& operator=(const WorkCommit&) = delete;
  ~WorkCommit();  // removes the folder

  [[nodiscard]] const std::string& id() const { return id_; }
  // Against the base; at most `most` bytes, the rest cut.
  [[nodiscard]] base::Result<GitSaid> diff(size_t most, const base::Deadline& deadline) const;
  // A git-bundle(1) of the commit at the new file `path`; who fetches it needs the base already.
  [[nodiscard]] base::Status bundle(const std::string& path, const base::Deadline& deadline) const;

 private:
  WorkCommit() = default;
  [[nodiscard]] base::Result<GitSaid> git(std::vector<std::string> arguments, const base::Deadline& deadline,
                                          int input = -1, size_t most = size_t{1} << 20U, bool cut = false) const;

  std::string place_;
  std::string objects_;  // of the clone
  std::string base_;
  std::string branch_;
  std::string id_;
};

}  // namespace belljar::workspace
