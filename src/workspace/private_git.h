// git, run in a folder of Belljar's own and told everything: nobody's configuration, hooks, filters or attributes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace belljar::workspace {

struct GitCall {
  std::string folder;  // that it runs in; nobody but this user may write there
  std::vector<std::string> arguments;
  std::vector<std::string> reads{};        // files and trees beside `folder` that it may read
  std::vector<std::string> environment{};  // more of NAME=VALUE
  int input = -1;                          // its standard input; none: empty
  size_t most = size_t{1} << 20U;          // bytes of output; more is an error, or with `cut` is left out
  bool cut = false;
};

struct GitSaid {
  std::string out;
  bool was_cut = false;
};

// Runs git from /usr/local/bin, /usr/bin or /bin with a whole environment of its own: no configuration of the system's
// or the user's, no hooks, attributes, file-system monitor, pager, editor, prompt, reflog, lazy fetch or transport but
// that to a folder of this machine (git(1), git-config(1)). It reads a repository that somebody hostile may have made,
// so as far as the kernel's Landlock goes (linux/landlock_domain.h) it is fenced in: it writes nothing outside of
// `folder`, reads nothing but that, `reads` and the system's programs, speaks to nobody and signals nobody. It is
// killed at the deadline, and with its starter. An error when it ends with another code than 0, with the line of what
// it said that tells why.
[[nodiscard]] base::Result<GitSaid> run_git(const GitCall& call, const base::Deadline& deadline);

}  // namespace belljar::workspace
