// The end of a session's container.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace belljar::tiers::docker {

// All that is needed to end what a launch may have made, recorded before it is made.
struct Remains {
  std::string engine;   // its socket
  std::string session;  // the label's value
  std::string meeting;  // the folder, or empty
  std::string more{};   // another of the launch's folders, such as that of a credential, or empty
};

[[nodiscard]] std::string encode(const Remains& remains);
[[nodiscard]] base::Result<Remains> decode_remains(std::string_view record);

struct Removal {
  std::vector<std::string> unreleased;  // what is, or may be, left, by name and label
  std::vector<std::string> notes;
};

// For what is left of a launch: its container, by name and label, and why.
[[nodiscard]] std::string unreleased_text(const Remains& remains, const base::Error& why);

// Removes every container that bears the session's label, and only those, and looks again until there is none. With
// `settle` and none found it waits for one that may yet appear: a request to make it may still be under way. Then the
// folders, when no container is left that could use it. Does not report what it has not seen. Can be done again.
[[nodiscard]] Removal remove(const Remains& remains, bool settle, const base::Deadline& deadline);

}  // namespace belljar::tiers::docker
