// What sessions have put into quarantine, to look through afterwards.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace belljar::workspace {

struct QuarantineItem {
  std::string id;      // "SESSION/NUMBER"
  std::string origin;  // absolute path where it was
  std::string at;      // absolute path where it is now
  mode_t mode = 0;     // as in struct stat; 0 when it is gone
  int64_t since = 0;   // seconds since 1970
};

// The folder that Quarantine moves things to. A guest wrote what is in it, so nothing here follows a link or believes a
// name; but no guest can write there now.
class QuarantineStore {
 public:
  // `path` is that folder. One that is missing is empty.
  [[nodiscard]] static base::Result<QuarantineStore> open(const std::string& path);

  // Oldest first; at most 10,000.
  [[nodiscard]] base::Result<std::vector<QuarantineItem>> list() const;

  // The item of that id, or a refusal that says where to look.
  [[nodiscard]] base::Result<QuarantineItem> find(std::string_view id) const;

  // Moves it to `to` (absolute), or to where it was when `to` is empty. Refused where something is there already, or
  // where a link leads there. Returns where it is now.
  [[nodiscard]] base::Result<std::string> restore(const QuarantineItem& item, const std::string& to) const;

  // Removes it, with all that is in it.
  [[nodiscard]] base::Status drop(const QuarantineItem& item) const;

 private:
  QuarantineStore(base::Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  void forget(const QuarantineItem& item) const;

  base::Fd fd_;  // none when there is no such folder
  std::string path_;
};

}  // namespace belljar::workspace
