// Command lines: options known by a table, in any order before the first word that is none or `--`.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belljar::cli {

struct Option {
  std::string_view name;   // "--report"
  std::string_view value;  // what follows it, for the help: "FILE"; empty for a switch
  std::string_view help;
  // Called with the value, or with an empty one for a switch.
  std::function<base::Status(std::string_view)> take;
};

// Calls `take` of every option met and returns the words behind the options (without `--`). `--name value` and
// `--name=value` are the same. An unknown option is refused with the nearest known name; a missing value, and a value
// for a switch, are refused too.
[[nodiscard]] base::Result<std::vector<std::string>> parse_options(std::span<const std::string> arguments,
                                                                   std::span<const Option> options);

// As above, for commands whose first word may also stand before the options; it comes first in what is returned.
[[nodiscard]] base::Result<std::vector<std::string>> parse_word_and_options(std::span<const std::string> arguments,
                                                                            std::span<const Option> options);

// The options as lines of a help page.
[[nodiscard]] std::string options_help(std::span<const Option> options);

}  // namespace belljar::cli
