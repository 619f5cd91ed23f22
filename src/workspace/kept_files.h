// What of a guest's private home outlives the session: logins, a state file, history. Everything that is read from the
// guest's side was made by whoever ran in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "workspace/settled.h"

namespace belljar::workspace {

struct KeptFile {
  enum class Kind : uint8_t {
    kLogin,      // the host takes the guest's file as it is
    kState,      // the host takes `keys` of the guest's JSON file
    kHistory,    // the host had none at the start; it takes files and folders that the guest made, and overwrites none
    kForbidden,  // what is there at the end is moved away, and not taken over from a history around it
  };
  Kind kind = Kind::kLogin;
  std::string path;               // on the host: absolute, and no component is a link
  std::string inside;             // relative to the guest's home
  std::vector<std::string> keys;  // kState
};

inline constexpr size_t kMostLogin = size_t{1} << 20U;      // bytes
inline constexpr size_t kMostState = size_t{16} << 20U;     // bytes
inline constexpr size_t kMostHistory = size_t{512} << 20U;  // bytes of all history taken over at one end
inline constexpr size_t kMostHistoryFiles = 20000;

// Made before the start; the guest's copies are of what it has read.
class KeptFiles {
 public:
  // Reads the host's logins and state. An error when one is there and cannot be copied: no regular file, unreadable, or
  // above its bound.
  [[nodiscard]] static base::Result<KeptFiles> open(std::vector<KeptFile> files);

  // The content of each copy that the guest gets, by `inside`.
  [[nodiscard]] const std::map<std::string, std::string>& copies() const { return copies_; }

  // After the guest's end: takes over what has changed. `home` is the folder of the guest's home, a descriptor of the
  // caller's; nothing is followed out of it. A host file is replaced as a whole, with its owner and mode, and only if
  // it is still what was merged. When a login changed on both sides, the newer one stays. Failures are in the result.
  [[nodiscard]] Settled settle(int home) const;

 private:
  std::vector<KeptFile> files_;
  std::map<std::string, std::string> copies_;
};

}  // namespace belljar::workspace
