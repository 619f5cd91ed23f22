#include "cli/options.h"

#include <algorithm>

#include "base/text.h"

namespace belljar::cli {
namespace {

std::unexpected<base::Error> unknown_option(std::string_view name, std::span<const Option> options) {
  std::vector<std::string_view> names{"--help"};
  for (const Option& option : options) names.push_back(option.name);
  const std::string_view near = base::nearest(name, names);
  return base::refuse(
      "read the option", name, "no such option",
      near.empty() ? "see --help; put '--' before the command" : "did you mean " + std::string(near) + "?");
}

}  // namespace

base::Result<std::vector<std::string>> parse_options(std::span<const std::string> arguments,
                                                     std::span<const Option> options) {
  size_t at = 0;
  for (; at < arguments.size(); ++at) {
    const std::string_view word = arguments[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (word.size() < 2 || word.front() != '-') break;
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const auto option = std::ranges::find(options, name, &Option::name);
    if (option == options.end()) return unknown_option(name, options);
    std::string_view value;
    if (equals != std::string_view::npos) {
      if (option->value.empty()) return base::refuse("read the option", name, "it takes no value");
      value = word.substr(equals + 1);
    } else if (!option->value.empty()) {
      if (at + 1 == arguments.size()) {
        return base::refuse("read the option", name, "its value is missing",
                            "write " + std::string(name) + " " + std::string(option->value));
      }
      value = arguments[++at];
    }
    BELLJAR_TRY(option->take(value));
  }
  return std::vector<std::string>(arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end());
}

base::Result<std::vector<std::string>> parse_word_and_options(std::span<const std::string> arguments,
                                                              std::span<const Option> options) {
  const bool has_word = !arguments.empty() && !arguments.front().starts_with('-');
  BELLJAR_ASSIGN(std::vector<std::string> words, parse_options(arguments.subspan(has_word ? 1 : 0), options));
  if (has_word) words.insert(words.begin(), arguments.front());
  return words;
}

std::string options_help(std::span<const Option> options) {
  size_t width = 0;
  const auto head = [](const Option& option) {
    std::string text = "  " + std::string(option.name);
    if (!option.value.empty()) text += " " + std::string(option.value);
    return text;
  };
  for (const Option& option : options) width = std::max(width, head(option).size());
  std::string out;
  for (const Option& option : options) {
    const std::string text = head(option);
    out += text + std::string(width + 2 - text.size(), ' ') + std::string(option.help) + "\n";
  }
  return out;
}

}  // namespace belljar::cli
