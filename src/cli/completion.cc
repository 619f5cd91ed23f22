#include "cli/completion.h"

#include <algorithm>

#include "base/text.h"
#include "policy/preset.h"

namespace belljar::cli {
namespace {

// What may follow an option, when that is a choice.
std::vector<std::string> choices_of(const Option& option) {
  std::vector<std::string> out;
  if (option.name == "--agent") {
    for (const std::string_view name : policy::agent_names()) out.emplace_back(name);
  } else if (option.name == "--mode") {
    out = {"jail", "none", "bwrap", "docker"};
  } else if (option.value.find('|') != std::string_view::npos) {
    std::string_view rest = option.value;
    for (size_t bar = 0; bar != std::string_view::npos; rest.remove_prefix(bar + 1)) {
      bar = rest.find('|');
      out.emplace_back(rest.substr(0, bar));
      if (bar == std::string_view::npos) break;
    }
  }
  return out;
}

bool names_a_file(const Option& option) {
  return option.value == "FILE" || option.value == "PATH" || option.value == "FOLDER";
}

// Within single quotes of a shell. fish has the same quotes, and a backslash escapes there.
std::string quoted(std::string_view text, bool fish = false) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += fish ? "\\'" : "'\\''";
    } else {
      out += c;
    }
  }
  return "'" + out + "'";
}

std::string bash_text(std::span<const CommandWords> commands) {
  std::vector<std::string> names;
  for (const CommandWords& command : commands) names.emplace_back(command.name);
  std::string out =
      "# bash completion of belljar; source it, or put it where bash-completion looks\n"
      "_belljar() {\n"
      "  local now=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} i\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '" +
      base::join(names, " ") +
      " --help --version' -- \"$now\"))\n"
      "    return\n"
      "  fi\n"
      "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
      "    [[ ${COMP_WORDS[i]} == -- ]] || continue\n"
      "    ((i + 1 < COMP_CWORD)) || COMPREPLY=($(compgen -c -- \"$now\"))\n"
      "    return\n"
      "  done\n"
      "  case ${COMP_WORDS[1]}:$before in\n";
  std::string words;
  for (const CommandWords& command : commands) {
    std::vector<std::string> all;
    for (const Option& option : command.options) {
      all.emplace_back(option.name);
      if (option.value.empty()) continue;
      const std::vector<std::string> choices = choices_of(option);
      out += "    " + std::string(command.name) + ":" + std::string(option.name) + ") ";
      if (!choices.empty()) out += "COMPREPLY=($(compgen -W '" + base::join(choices, " ") + "' -- \"$now\")); ";
      out += "return ;;\n";
    }
    for (const std::string_view word : command.words) all.emplace_back(word);
    if (command.command_follows) all.emplace_back("--");
    words += "    " + std::string(command.name) + ") COMPREPLY=($(compgen -W '" + base::join(all, " ") +
             "' -- \"$now\")) ;;\n";
  }
  return out + "  esac\n  case ${COMP_WORDS[1]} in\n" + words + "  esac\n}\ncomplete -o default -F _belljar belljar\n";
}

std::string zsh_text(std::span<const CommandWords> commands) {
  const auto plain = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (std::string_view("[]:\\").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
    return out;
  };
  std::string out = "#compdef belljar\n_belljar() {\n  local -a commands=(\n";
  for (const CommandWords& command : commands) {
    out += "    " + quoted(plain(command.name) + ":" + plain(command.summary)) + "\n";
  }
  out +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
      "  local name=$words[2]\n  shift words\n  ((CURRENT--))\n  case $name in\n";
  for (const CommandWords& command : commands) {
    out += "    " + std::string(command.name) + ")\n      _arguments -S";
    for (const Option& option : command.options) {
      std::string text = "*" + std::string(option.name) + "[" + plain(option.help) + "]";
      if (!option.value.empty()) {
        text += ":" + plain(option.value) + ":";
        const std::vector<std::string> choices = choices_of(option);
        if (!choices.empty()) text += "(" + base::join(choices, " ") + ")";
        if (names_a_file(option)) text += "_files";
      }
      out += " \\\n        " + quoted(text);
    }
    if (!command.words.empty()) {
      const std::vector<std::string> words(command.words.begin(), command.words.end());
      out += " \\\n        '1:word:(" + base::join(words, " ") + ")'";
    }
    out += command.command_follows ? " \\\n        '*::command:_normal' ;;\n" : " \\\n        '*:file:_files' ;;\n";
  }
  return out +
         "  esac\n}\nif [[ $funcstack[1] == _belljar ]]; then _belljar \"$@\"; else compdef _belljar belljar; fi\n";
}

std::string fish_text(std::span<const CommandWords> commands) {
  std::string out;
  for (const CommandWords& command : commands) {
    out += "complete -c belljar -f -n __fish_use_subcommand -a " + std::string(command.name) + " -d " +
           quoted(command.summary, true) + "\n";
    const std::string when =
        "complete -c belljar -n " + quoted("__fish_seen_subcommand_from " + std::string(command.name));
    for (const std::string_view word : command.words) out += when + " -f -a " + std::string(word) + "\n";
    for (const Option& option : command.options) {
      out += when + " -l " + std::string(option.name.substr(2));
      if (!option.value.empty()) {
        const std::vector<std::string> choices = choices_of(option);
        out += names_a_file(option) ? " -r -F" : " -x";
        if (!choices.empty()) out += " -a " + quoted(base::join(choices, " "), true);
      }
      out += " -d " + quoted(option.help, true) + "\n";
    }
  }
  return out;
}

// Text for roff: a hyphen that can be copied, and no line that begins with a control.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '-') out += '\\';
    out += c == '\\' ? 'e' : c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string man_text(std::span<const CommandWords> commands) {
  std::string out =
      ".\\\" Made by 'belljar completion man'; tests compare.\n"
      ".TH BELLJAR 1\n.SH NAME\nbelljar \\- put an AI coding agent under glass\n"
      ".SH SYNOPSIS\n.B belljar\n.I COMMAND\n[\\fIOPTION\\fR]...\n"
      ".SH DESCRIPTION\n"
      "Runs an agent, or any command, so that it sees its work folder, its own login and nothing else, and reaches "
      "the\n"
      "hosts you named and nothing else.\n"
      ".SH COMMANDS\n";
  for (const CommandWords& command : commands) {
    out += ".TP\n.B " + std::string(command.name) + "\n" + roff(command.summary) + "\n";
  }
  for (const CommandWords& command : commands) {
    if (command.options.empty()) continue;
    std::string title(command.name);
    std::ranges::transform(title, title.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
    out += ".SH OPTIONS OF " + title + "\n";
    for (const Option& option : command.options) {
      out += ".TP\n.B " + roff(option.name) + (option.value.empty() ? "" : " \\fI" + roff(option.value) + "\\fR") +
             "\n" + roff(option.help) + "\n";
    }
  }
  return out +
         ".SH EXIT STATUS\n"
         "That of the command; 128 and the number of the signal that ended it; 124 at the deadline; 125 when Belljar "
         "itself\nfailed or refused; 126 and 127 when the command cannot be executed or is not there.\n";
}

}  // namespace

std::optional<std::string> completion_text(std::string_view kind, std::span<const CommandWords> commands) {
  if (kind == "bash") return bash_text(commands);
  if (kind == "zsh") return zsh_text(commands);
  if (kind == "fish") return fish_text(commands);
  if (kind == "man") return man_text(commands);
  return std::nullopt;
}

}  // namespace belljar::cli
