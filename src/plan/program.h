// Finding what a command needs of the person's home, as narrowly as works.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/draft.h"
#include "plan/facts.h"

namespace belljar::plan {

struct ProgramRoot {
  std::string path;  // what to bind: the file itself or a folder above it
  std::string reason;
  bool known = false;  // a tool's own layout, not something a folder's content could suggest
};

// The smallest tree a program at real path `file.file.real` runs from: the version folder of nvm, pyenv and their
// like, the outermost `node_modules`, the venv, the package, else the file alone.
[[nodiscard]] ProgramRoot program_root(const ProgramFile& file);

// True when `path` is one of the places below the home where logins and keys are kept, or lies in one.
[[nodiscard]] bool is_credential(std::string_view path, std::string_view home);

// True when binding `path` would show credentials or the whole home, whose real path is `home`.
[[nodiscard]] bool is_private(std::string_view path, std::string_view home);

// Binds what the found program and its interpreters need and the guest does not see yet.
// Refuses a program that cannot be found or executed (code ENOENT or EACCES, for exit codes 127 and 126), one that lies
// beside credentials, and one that is reached through a link which a guest could have made.
[[nodiscard]] base::Status add_program(Draft& draft, const std::string& name);

// The refusal for a program that was not found or is not executable, else nothing.
[[nodiscard]] base::Status check_program(const ProgramFact& program, const std::string& name);

}  // namespace belljar::plan
