#include "plan/git_identity.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

namespace belljar::plan {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// Section and key in lower case; `[include "x"]` is the section `include "`.
using Setting = std::function<void(std::string_view section, std::string_view key, std::string value)>;

// One pass over the text. What is not well formed ends it: git itself would refuse the file.
class Reader {
 public:
  Reader(std::string_view text, const Setting& setting) : rest_(text), setting_(setting) {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
  }

  void run() {
    while (!rest_.empty()) {
      const char c = rest_.front();
      if (is_blank(c) || c == '\n') {
        rest_.remove_prefix(1);
      } else if (c == '#' || c == ';') {
        skip_line();
      } else if (c == '[') {
        if (!take_section()) return;
      } else if (!take_setting()) {
        return;
      }
    }
  }

 private:
  void skip_line() { rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size())); }
  bool take_section() {
    const size_t end = rest_.find_first_of("]\"\n");
    if (end == std::string_view::npos || rest_[end] == '\n') return false;
    std::string name(rest_.substr(1, end - 1));
    std::ranges::transform(name, name.begin(), lower);
    // `[user "x"]` is another section than `[user]`.
    if (rest_[end] == '"') name = name.substr(0, name.find_first_of(" \t")) + "\"";
    // And `[user.x]` is an old way to say so.
    if (const size_t dot = name.find('.'); dot != std::string::npos) name = name.substr(0, dot) + "\"";
    section_ = std::move(name);
    if (rest_[end] == ']') {
      rest_.remove_prefix(end + 1);
      return true;
    }
    rest_.remove_prefix(end + 1);
    while (!rest_.empty() && rest_.front() != '"') {
      if (rest_.front() == '\n') return false;
      rest_.remove_prefix(rest_.front() == '\\' && rest_.size() > 1 ? 2 : 1);
    }
    if (!rest_.starts_with("\"]")) return false;
    rest_.remove_prefix(2);
    return true;
  }

  bool take_setting() {
    std::string key;
    while (!rest_.empty() && !is_blank(rest_.front()) && rest_.front() != '=' && rest_.front() != '\n') {
      key += lower(rest_.front());
      rest_.remove_prefix(1);
    }
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
    if (key.empty()) return false;
    if (!rest_.starts_with('=')) {
      skip_line();  // a key without a value is a boolean
      return true;
    }
    rest_.remove_prefix(1);
    std::optional<std::string> value = take_value();
    if (!value) return false;
    setting_(section_, key, std::move(*value));
    return true;
  }

  // To the end of the line, without the blanks around it and comments; quotes keep both.
  std::optional<std::string> take_value() {
    std::string out;
    size_t kept = 0;  // of `out`, up to the last character that is no blank
    bool quoted = false;
    while (!rest_.empty() && rest_.front() != '\n') {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') {
        quoted = !quoted;
        kept = out.size();
        continue;
      }
      if (!quoted && (c == '#' || c == ';')) {
        skip_line();
        break;
      }
      const bool escaped = c == '\\';
      if (escaped && !take_escape(c)) return std::nullopt;
      if (escaped && c == '\n') continue;
      if (out.empty() && !quoted && !escaped && is_blank(c)) continue;
      out += c;
      if (quoted || escaped || !is_blank(c)) kept = out.size();
    }
    if (quoted) return std::nullopt;
    out.resize(kept);
    return out;
  }

  // A newline stands for a line that goes on.
  bool take_escape(char& c) {
    if (rest_.empty()) return false;
    const char mark = rest_.front();
    rest_.remove_prefix(1);
    switch (mark) {
      case '\n':
      case '"':
      case '\\':
        c = mark;
        return true;
      case 'n':
      case 't':
      case 'b':
        c = '\x01';  // a control character like those they stand for
        return true;
      default:
        return false;
    }
  }

  std::string_view rest_;
  const Setting& setting_;
  std::string section_;
};

// What git starts by itself in the course of status, diff, add, commit, fetch and the like (git-config(1),
// gitattributes(5)); not what a person calls by name, such as an alias or a difftool. A section with a quote at its end
// has names of its own (`[filter "x"]`); an empty key is any.
struct Command {
  std::string_view section;
  std::string_view key;
};
constexpr std::array kCommands = {Command{"core", "fsmonitor"},
                                  Command{"core", "sshcommand"},
                                  Command{"core", "editor"},
                                  Command{"core", "pager"},
                                  Command{"core", "askpass"},
                                  Command{"core", "gitproxy"},
                                  Command{"core", "alternaterefscommand"},
                                  Command{"sequence", "editor"},
                                  Command{"pager", ""},
                                  Command{"diff", "external"},
                                  Command{"diff\"", "command"},
                                  Command{"diff\"", "textconv"},
                                  Command{"merge\"", "driver"},
                                  Command{"filter\"", "clean"},
                                  Command{"filter\"", "smudge"},
                                  Command{"filter\"", "process"},
                                  Command{"gpg", "program"},
                                  Command{"gpg\"", "program"},
                                  Command{"gpg\"", "defaultkeycommand"},
                                  Command{"credential", "helper"},
                                  Command{"credential\"", "helper"},
                                  Command{"interactive", "difffilter"},
                                  Command{"trailer\"", "command"},
                                  Command{"trailer\"", "cmd"},
                                  Command{"uploadpack", "packobjectshook"},
                                  Command{"gc", "recentobjectshook"},
                                  Command{"remote\"", "uploadpack"},
                                  Command{"remote\"", "receivepack"},
                                  Command{"hook\"", "command"},
                                  Command{"submodule\"", "update"}};

bool is_command(std::string_view section, std::string_view key) {
  return std::ranges::any_of(kCommands, [&](const Command& command) {
    return command.section == section && (command.key.empty() || command.key == key);
  });
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

// True for what takes its next word for a script.
bool is_interpreter(std::string_view word) {
  constexpr std::array<std::string_view, 8> kNames = {"sh", "bash", "dash", "zsh", "node", "perl", "ruby", "env"};
  const std::string_view name = word.substr(word.rfind('/') + 1);
  return name.starts_with("python") || std::ranges::find(kNames, name) != kNames.end();
}

// What a shell could take for a path, whatever the quotes and operators around it. A word without a slash is one only
// for an interpreter, or where a file has that name. What follows a variable or `$(…)` may begin at the top of the work
// tree, and what follows a `cd` in the folder that it names.
void add_words(std::string_view line, GitRedirects& into) {
  std::vector<std::string>& out = into.words;
  constexpr std::string_view kEnds =
      " '\"`;|&()<>{}=$!\x01\x02\x03\x04\x05\x06\x07\b\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18"
      "\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f";
  // A quoted name may hold blanks.
  for (const char quote : {'\'', '"'}) {
    for (size_t at = line.find(quote); at != std::string_view::npos;) {
      const size_t end = line.find(quote, at + 1);
      if (end == std::string_view::npos) break;
      const std::string_view inside = line.substr(at + 1, end - at - 1);
      if (inside.contains(' ') && inside.contains('/')) out.emplace_back(inside);
      at = line.find(quote, end + 1);
    }
  }
  std::string_view before;
  std::string_view folder;
  char mark = ' ';
  while (!line.empty()) {
    const size_t end = std::min(line.find_first_of(kEnds), line.size());
    if (const std::string_view word = line.substr(0, end); !word.empty()) {
      const size_t slash = word.find('/');
      if (slash != std::string_view::npos || is_interpreter(before)) {
        out.emplace_back(word);
      } else {
        into.names.emplace_back(word);
      }
      if (!folder.empty() && !word.starts_with('/')) out.push_back(std::string(folder) + "/" + std::string(word));
      if (before == "cd") folder = word;
      const bool expanded = mark == '$' || mark == ')' || mark == '}' || mark == '"' || mark == '`';
      if (expanded && slash != std::string_view::npos) out.push_back("." + std::string(word.substr(slash)));
      if (!word.starts_with('-')) before = word;
    }
    if (end < line.size()) mark = line[end];
    line.remove_prefix(std::min(end + 1, line.size()));
  }
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

void read_git_identity(std::string_view text, GitIdentity& into) {
  const Setting take = [&](std::string_view section, std::string_view key, std::string value) {
    if (section != "user" || has_control(value)) return;
    if (key == "name") {
      into.name = std::move(value);
    } else if (key == "email") {
      into.email = std::move(value);
    }
  };
  Reader(text, take).run();
}

void read_git_redirects(std::string_view text, GitRedirects& into) {
  const Setting take = [&](std::string_view section, std::string_view key, std::string value) {
    if (is_command(section, key)) {
      add_words(value, into);
    } else if (has_control(value)) {
      return;
    } else if ((section == "core" && key == "hookspath") || (section == "init" && key == "templatedir")) {
      into.programs.push_back(std::move(value));
    } else if (section == "core" && key == "worktree") {
      into.work_tree = std::move(value);
    } else if ((section == "include" || section == "includeif\"") && key == "path") {
      into.files.push_back(std::move(value));
    }
  };
  Reader(text, take).run();
}

void add_git_identity(Draft& draft) {
  const std::string target = draft.real_home + "/.gitconfig";
  if (draft.policy.files.home == policy::Home::kEmpty || draft.table.at(target) != nullptr) return;
  if (const Mount* cover = draft.table.covering(target); cover == nullptr || cover->kind != MountKind::kScratch) return;
  const GitIdentity& who = draft.facts.git_identity;
  std::string text = "[safe]\n\tdirectory = *\n";
  // The host's index knows the files by their owner on disk. Git would read every one of them anew, in each `git
  // status`, since it cannot write down what it found.
  if (draft.identity.guest_uid != draft.identity.disk_uid) text += "[core]\n\tcheckStat = minimal\n";
  // `objects/info` is read-only, and git would fail for these two.
  if (draft.policy.git == policy::GitAccess::kWrite) {
    text += "[gc]\n\twriteCommitGraph = false\n[repack]\n\tupdateServerInfo = false\n";
  }
  if (!who.name.empty() || !who.email.empty()) text += "[user]\n";
  if (!who.name.empty()) text += "\tname = " + quoted(who.name) + "\n";
  if (!who.email.empty()) text += "\temail = " + quoted(who.email) + "\n";
  draft.table.add({.kind = MountKind::kFile,
                   .target = target,
                   .source = std::move(text),
                   .reason = "user.name and user.email of the person"});
}

}  // namespace belljar::plan
