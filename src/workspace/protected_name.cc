#include "workspace/protected_name.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "base/text.h"

namespace belljar::workspace {
namespace {

using std::string_view_literals::operator""sv;

// Mercurial, Jujutsu, Sapling, Pijul; darcs has no dot.
constexpr std::array kRepositories = {".hg"sv, ".jj"sv, ".pijul"sv, ".sl"sv, "_darcs"sv};

constexpr std::array kFolders = {".agents"sv, ".amazonq"sv,      ".claude"sv,  ".codex"sv,    ".continue"sv,
                                 ".cursor"sv, ".devcontainer"sv, ".factory"sv, ".fleet"sv,    ".gemini"sv,
                                 ".helix"sv,  ".husky"sv,        ".idea"sv,    ".junie"sv,    ".kiro"sv,
                                 ".nova"sv,   ".opencode"sv,     ".qwen"sv,    ".roo"sv,      ".theia"sv,
                                 ".trae"sv,   ".vs"sv,           ".vscode"sv,  ".windsurf"sv, ".zed"sv};

// Those without a dot.
constexpr std::array kPlainFiles = {"crush.json"sv, "opencode.json"sv, "opencode.jsonc"sv};

// The names of R and others are in lower case here, as the comparison wants them.
constexpr std::array kFiles = {
    ".aider.conf.yml"sv, ".bash_aliases"sv, ".bash_login"sv, ".bash_logout"sv, ".bash_profile"sv,
    ".bashrc"sv,         ".belljar.toml"sv, ".crush.json"sv, ".cshrc"sv,       ".devcontainer.json"sv,
    ".envrc"sv,          ".exrc"sv,         ".gdbinit"sv,    ".ghci"sv,        ".gitconfig"sv,
    ".gitmodules"sv,     ".gvimrc"sv,       ".iex.exs"sv,    ".inputrc"sv,     ".irbrc"sv,
    ".kshrc"sv,          ".lazy.lua"sv,     ".lldbinit"sv,   ".login"sv,       ".mcp.json"sv,
    ".mkshrc"sv,         ".nvim.lua"sv,     ".nvimrc"sv,     ".ocamlinit"sv,   ".octaverc"sv,
    ".pdbrc"sv,          ".perldb"sv,       ".profile"sv,    ".pryrc"sv,       ".ripgreprc"sv,
    ".rprofile"sv,       ".tcshrc"sv,       ".vimrc"sv,      ".xinitrc"sv,     ".xprofile"sv,
    ".xsession"sv,       ".xsessionrc"sv,   ".zlogin"sv,     ".zlogout"sv,     ".zprofile"sv,
    ".zshenv"sv,         ".zshrc"sv};

// The last four are of operations that wait for `--continue`: their commands, strategies (a program of that name) and
// options, and for what git-bisect's shell script of git 2.30 evaluates.
constexpr std::array kObeyedByGit = {
    "hooks"sv,   "config"sv,   "config.worktree"sv, "commondir"sv,    "gitdir"sv,    "modules"sv,     "worktrees"sv,
    "remotes"sv, "branches"sv, "rebase-merge"sv,    "rebase-apply"sv, "sequencer"sv, "bisect_names"sv};

constexpr std::array kPackageFolders = {"node_modules"sv, "site-packages"sv};

// One code point of UTF-8 at the front of `text`, taken off it; a byte that is none is itself.
uint32_t take_code_point(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
  uint32_t out = size == 1 ? first : first & (0xFFU >> (size + 1));
  if (size > text.size()) {
    text.remove_prefix(1);
    return first;
  }
  for (size_t i = 1; i < size; ++i) out = (out << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  text.remove_prefix(size);
  return out;
}

// Default_Ignorable_Code_Point of Unicode, the runs that fs/unicode drops when it folds.
bool is_ignored(uint32_t point) {
  struct Run {
    uint32_t first;
    uint32_t last;
  };
  static constexpr std::array kRuns = {
      Run{0xAD, 0xAD},       Run{0x34F, 0x34F},    Run{0x61C, 0x61C},   Run{0x115F, 0x1160}, Run{0x17B4, 0x17B5},
      Run{0x180B, 0x180F},   Run{0x200B, 0x200F},  Run{0x202A, 0x202E}, Run{0x2060, 0x206F}, Run{0x3164, 0x3164},
      Run{0xFE00, 0xFE0F},   Run{0xFEFF, 0xFEFF},  Run{0xFFA0, 0xFFA0}, Run{0xFFF0, 0xFFF8}, Run{0x1BCA0, 0x1BCA3},
      Run{0x1D173, 0x1D17A}, Run{0xE0000, 0xE0FFF}};
  return std::ranges::any_of(kRuns, [&](const Run& run) { return point >= run.first && point <= run.last; });
}

// `name` as the comparison wants it. What is outside ASCII after folding stands as '?', which no listed name holds.
std::string folded(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    uint32_t point = take_code_point(name);
    if (point == 0x212A) point = 'k';  // KELVIN SIGN
    if (point == 0x17F) point = 's';   // LATIN SMALL LETTER LONG S
    if (point >= 'A' && point <= 'Z') point += 'a' - 'A';
    if (point >= 0x80 && is_ignored(point)) continue;
    out += point < 0x80 ? static_cast<char>(point) : '?';
  }
  while (!out.empty() && (out.back() == '.' || out.back() == ' ')) out.pop_back();
  return out;
}

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

NameKind protected_name(std::string_view name) {
  // Nearly every name ends here: those that are listed start with a dot, `_` or one of two letters, which only an
  // ignored code point can precede.
  const auto first = static_cast<unsigned char>(name.empty() ? 0 : name.front());
  const bool listed =
      first == '.' || first == '_' || first >= 0x80 || ((first | 0x20U) == 'c' || (first | 0x20U) == 'o');
  if (!listed) return NameKind::kNone;
  if (first != '.' && first != '_' && first < 0x80 && !name.contains('.')) return NameKind::kNone;
  const std::string plain = folded(name);
  if (is_one_of(kPlainFiles, plain)) return NameKind::kFile;
  if (plain == ".git") return NameKind::kGit;
  if (is_one_of(kRepositories, plain)) return NameKind::kRepository;
  if (is_one_of(kFolders, plain)) return NameKind::kFolder;
  if (is_one_of(kFiles, plain)) return NameKind::kFile;
  if (plain.starts_with(kQuarantinePrefix)) return NameKind::kQuarantine;
  return NameKind::kNone;
}

bool lies_in_packages(std::string_view path) {
  return std::ranges::any_of(base::split(path, '/'),
                             [](std::string_view part) { return is_one_of(kPackageFolders, part); });
}

bool obeyed_by_git(std::string_view name) {
  return is_one_of(kObeyedByGit, folded(name));
}

bool kept_by_git(std::string_view name) {
  constexpr std::array kOwn = {"objects"sv, "refs"sv, "logs"sv, "info"sv};
  return obeyed_by_git(name) || is_one_of(kOwn, name);
}

bool names_more_objects(std::string_view name) {
  const std::string plain = folded(name);
  return plain == "alternates" || plain == "http-alternates";
}

}  // namespace belljar::workspace
