// The names in a folder that programs of the host obey without being asked.
#pragma once

#include <cstdint>
#include <string_view>

namespace belljar::workspace {

enum class NameKind : uint8_t {
  kNone,
  kGit,         // `.git`: a repository, or the file that names one
  kRepository,  // what Mercurial and others have in its place: their configuration there names programs, too
  kFolder,      // settings, hooks, tasks: `.claude`, `.vscode`, …
  kFile,        // `.envrc`, `.mcp.json`, shell start-up files, …
  kQuarantine,  // what an earlier session's end put away, kQuarantinePrefix
};

// Folders in a work folder where things were put that could not be moved to the state folder.
inline constexpr std::string_view kQuarantinePrefix = ".belljar-quarantine-";

// What programs make of an entry called `name`. As a file system without case would compare: in any case, with code
// points that such a file system ignores, and with dots or spaces at the end. Sources: git's verify_path() and
// fs/unicode of Linux, for what `.git` may be spelt like; gitmodules(5), hgrc(5), bash(1), zsh(1), direnv(1), and the
// documents of the agents, editors and interpreters for the rest.
[[nodiscard]] NameKind protected_name(std::string_view name);

[[nodiscard]] constexpr bool is_repository(NameKind name) {
  return name == NameKind::kGit || name == NameKind::kRepository;
}

// True for a path, relative to the work folder, in a folder of installed packages (`node_modules`, `site-packages`):
// nobody opens those as projects, and installers remove and make them whole. Of the names only those of repositories
// count there.
[[nodiscard]] bool lies_in_packages(std::string_view path);

// True for the entries of a git folder that make git run or obey something: hooks, configuration, what leads it to
// another one, and a rebase that is under way, whose list of steps may hold commands (gitrepository-layout(5),
// git-rebase(1), git-worktree(1)).
[[nodiscard]] bool obeyed_by_git(std::string_view name);

// True for the folders of a repository that are git's alone: in a bare repository that is a work folder, the others are
// worktrees, or whatever else a person keeps there.
[[nodiscard]] bool kept_by_git(std::string_view name);

// True for the files of a repository's `objects/info` that send git to other folders of objects.
[[nodiscard]] bool names_more_objects(std::string_view name);

}  // namespace belljar::workspace
