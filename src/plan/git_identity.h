// The two settings of git that a guest gets: who the person is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/draft.h"
#include "plan/facts.h"

namespace belljar::plan {

// Takes user.name and user.email out of the text of a git config file (git-config(1), "Syntax"), over what `into`
// holds. Anything else is passed over, included files too, so that nothing of the person's that git would execute
// (helpers, aliases, pagers, ssh commands) and no other file is ever looked at. A value with control characters is left
// out.
void read_git_identity(std::string_view text, GitIdentity& into);

// What a git config file sends git to. As written, so perhaps relative.
struct GitRedirects {
  // Folders: of hooks that git starts (core.hooksPath), and of what it puts into each new repository
  // (init.templateDir).
  std::vector<std::string> programs{};
  // Words of command lines that git gives to a shell unasked: core.fsmonitor, filters, textconv, editors, ….
  // Each may be a program, or a script that one runs.
  std::vector<std::string> words{};
  std::vector<std::string> names{};  // other words of theirs: a script, where a file at the top is called so
  std::vector<std::string> files{};  // what git obeys as it obeys this one: include.path, includeIf.*.path
  std::string work_tree{};           // core.worktree, relative to the git folder
};
void read_git_redirects(std::string_view text, GitRedirects& into);

// Gives the guest's home a `.gitconfig` with these two, in which every folder is safe: git in a guest has nothing to
// fear from a repository that the agent can execute programs from anyway. Where files have another owner in the guest
// than on disk, git is told not to look at it. Not when the policy gives the file.
void add_git_identity(Draft& draft);

}  // namespace belljar::plan
