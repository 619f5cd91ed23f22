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
    const bool good = std::ranges::none_of(*value, [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte < 0x20 || byte == 0x7F;
    });
    if (good) setting_(section_, key, std::move(*value));
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
        c = '\x01';  // a control character like those they stand for: the value is left out
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
                                  Command{"remote\"", "uploadpack"},
                                  Command{"remote\"", "receivepack"},
                                  Command{"submodule\"", "update"}};

bool is_command(std::string_view section, std::string_view key) {
  return std::ranges::any_of(kCommands, [&](const Command& command) {
    return command.section == section && (command.key.empty() || command.key == key);
  });
}

// What a shell could take for a word or for the name in one, whatever the quotes and operators around it.
void add_words(std::string_view line, std::vector<std::string>& out) {
  while (!line.empty()) {
    const size_t end = std::min(line.find_first_of(" \t'\"`;|&()<>{}=$!"), line.size());
    if (end > 0) out.emplace_back(line.substr(0, end));
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
    if (section != "user") return;
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
    if (section == "core" && key == "hookspath") {
      into.programs.push_back(std::move(value));
    } else if (is_command(section, key)) {
      add_words(value, into.words);
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
  if (!who.name.empty() || !who.email.empty()) text += "[user]\n";
  if (!who.name.empty()) text += "\tname = " + quoted(who.name) + "\n";
  if (!who.email.empty()) text += "\temail = " + quoted(who.email) + "\n";
  draft.table.add({.kind = MountKind::kFile,
                   .target = target,
                   .source = std::move(text),
                   .reason = "user.name and user.email of the person"});
}

}  // namespace belljar::plan
