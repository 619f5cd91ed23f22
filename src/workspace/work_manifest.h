// What was changed in a task's checkout, worked out from an archive of it and the base commit's listing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/tar.h"
#include "workspace/clone.h"

namespace belljar::workspace {

struct WorkChange {
  enum class Kind : uint8_t { kAdded, kModified, kDeleted };
  Kind kind = Kind::kAdded;
  std::string path{};    // relative to the checkout
  uint32_t mode = 0;     // git's: 0100644, 0100755, 0120000; of a deleted one 0
  uint64_t size = 0;     // of the content, a link's target included
  std::string sha256{};  // of the content, in hex digits; of a deleted one empty
  uint64_t at = 0;       // where in the manifest's content it is
};

// Something that no commit may hold. The change it would be is in no list.
struct Objection {
  std::string path;
  std::string reason;
};

inline constexpr size_t kMostChanges = 10'000;

struct Manifest {
  std::string base;                   // the commit's id
  std::vector<WorkChange> changes;    // by path
  std::vector<Objection> objections;  // by path
  base::Fd content;                   // a file without a name: what was added or modified, one after the other

  // SHA-256, in hex digits, of all of it, contents included: two with the same digest become the same commit.
  [[nodiscard]] std::string digest() const;
};

// Takes a checkout's archive (paths relative to it) entry by entry. Objected to are: hard links, special files, links
// that leave the checkout, repositories within it, whatever lies in .git's place, and changed names that are not UTF-8.
// More than kMostChanges of both together is an error. Folders count by what is in them, as with git; of modes only
// whether the owner may execute counts. Nothing is decoded, filtered or run.
class ManifestMaker : public base::TarReader::Sink {
 public:
  // `content_folder` is a private folder in which the content's file is made, without a name (O_TMPFILE).
  [[nodiscard]] static base::Result<std::unique_ptr<ManifestMaker>> make(std::string base, BaseTree tree,
                                                                         const std::string& content_folder);
  ~ManifestMaker() override;

  base::Status on_entry(const base::TarEntry& entry) override;
  base::Status on_bytes(std::string_view bytes) override;
  base::Status on_end() override;
  // After the whole archive.
  [[nodiscard]] base::Result<Manifest> finish();

 private:
  struct Hash;
  ManifestMaker(std::string base, BaseTree tree, base::Fd content);
  base::Status object(std::string path, std::string_view reason);
  base::Status begin(std::string path, uint32_t mode, uint64_t size);
  base::Status count_one();

  BaseTree tree_;  // what has not been met yet
  Manifest out_;
  uint64_t content_size_ = 0;
  size_t count_ = 0;
  std::set<std::string> repositories_;  // that were objected to
  std::optional<WorkChange> now_;
  std::optional<BaseEntry> before_;
  std::unique_ptr<Hash> hash_;
};

// Holds an archive of a task's metadata against the clone's own, byte for byte.
class MetadataCheck : public base::TarReader::Sink {
 public:
  explicit MetadataCheck(const Clone& clone) : clone_(clone) {}

  base::Status on_entry(const base::TarEntry& entry) override;
  base::Status on_bytes(std::string_view bytes) override;
  base::Status on_end() override;
  // Refuses when anything is more, less or other: commits of the agent's by name, and all else.
  [[nodiscard]] base::Status finish(const base::Deadline& deadline);

 private:
  void differs(const std::string& path);

  const Clone& clone_;
  std::set<std::string> met_;
  std::vector<std::string> different_;
  std::string path_;
  base::Fd file_;
  bool same_ = false;
};

}  // namespace belljar::workspace
