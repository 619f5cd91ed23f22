// Where people have their commands: PATH, links, npm, version managers, scripts and their interpreters.
#pragma once

#include <string>
#include <string_view>

#include "plan/facts.h"
#include "session/walk.h"

namespace belljar::session {

// Finds `name` as execvp(3) would, with `path` as PATH and `folder` as the current folder, and then the interpreters
// that first lines name (execve(2), "Interpreter scripts"; `env` is looked through). Executes nothing. Relative entries
// of PATH are passed over. `home` is the real path of the person's home.
[[nodiscard]] plan::ProgramFact find_program(const std::string& name, std::string_view path, const std::string& folder,
                                             const std::string& home, Walker& walker);

}  // namespace belljar::session
