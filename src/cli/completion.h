// What shells and readers are told of the commands: completions and the man page, from the tables of options.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace belljar::cli {

struct CommandWords {
  std::string_view name;
  std::string_view summary;
  std::vector<Option> options{};          // only what they are called and what follows them is used
  std::vector<std::string_view> words{};  // that may follow the name
  bool command_follows = false;           // `-- COMMAND`
};

// For `bash`, `zsh` or `fish`: a script to be sourced; for `man`: the man page as roff. Nothing for another name.
[[nodiscard]] std::optional<std::string> completion_text(std::string_view kind, std::span<const CommandWords> commands);

}  // namespace belljar::cli
