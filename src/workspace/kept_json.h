// The three-way merge of a JSON file of which a guest had a copy. The only home of the JSON library here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belljar::workspace {

struct MergedState {
  std::optional<std::string> text;     // what the host's file is to be; nothing when it can stay as it is
  std::vector<std::string> kept_back;  // keys that both had changed, and of which the host's value stays
};

inline constexpr int kMostStateDepth = 64;  // objects and arrays inside each other

// Takes over from `guest` those of `keys`, at the top of the object, that are not what they were in `base`: a new
// value, or none where there was one. What `host` has changed meanwhile stays, and so does everything that `keys` does
// not name, in its order. `base` and `host` are nothing when there was or is no file. An error when one of them is no
// JSON object (RFC 8259) or is deeper than kMostStateDepth; no text is changed then.
[[nodiscard]] base::Result<MergedState> merge_state(const std::optional<std::string>& base, std::string_view guest,
                                                    const std::optional<std::string>& host,
                                                    const std::vector<std::string>& keys);

}  // namespace belljar::workspace
