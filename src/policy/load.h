// From the files and flags of a launch to its policy. The one place of this layer that reads files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/flags.h"
#include "policy/layer.h"
#include "policy/policy.h"

namespace belljar::policy {

// The policy of a launch: built-in policy, then `standing` (what a person said for all launches or for this folder,
// lowest first), then what `file` extends (in the order written, each with what it extends itself), then `file`, then
// the flags.
[[nodiscard]] base::Result<Policy> load(const std::vector<PolicyLayer>& standing,
                                        const std::optional<std::string>& file, const FlagOverrides& flags);

// The policy of a file alone, as `belljar policy check` and `belljar policy show` judge it.
[[nodiscard]] base::Result<Policy> check(const std::string& file);

// `belljar policy check FILE`: one line that says what the file permits.
[[nodiscard]] base::Result<std::string> check_text(const std::string& file);

// `belljar policy show FILE`: show() or show_json() of check().
[[nodiscard]] base::Result<std::string> show_text(const std::string& file, bool json);

// Reads a file whole. `named_by_policy` is true for files that `extends` names: those may not be symbolic links, since
// whoever can write beside a policy could else make it quote any file.
using FileReader = std::function<base::Result<std::string>(const std::string& path, bool named_by_policy)>;

// The FileReader of every other function here: a regular file of at most 256 KiB.
[[nodiscard]] base::Result<std::string> read_policy_file(const std::string& path, bool named_by_policy);

constexpr int kMaxExtendsDepth = 8;
constexpr int kMaxExtendsFiles = 32;

// The layers of `file` and everything it extends, lowest first. A file that extends itself, more than kMaxExtendsDepth
// files inside each other or more than kMaxExtendsFiles in all are refused, with the place of the entry.
[[nodiscard]] base::Result<std::vector<PolicyLayer>> read_layers(const std::string& file, const FileReader& reader);

}  // namespace belljar::policy
