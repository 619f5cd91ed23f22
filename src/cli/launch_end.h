// The files and the end of a launch, as a person sees them.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "cli/command.h"
#include "plan/plan.h"
#include "session/settlement.h"

namespace belljar::cli {

// A file of the launcher's goes where the person said and nowhere else: it may lie in a folder that an agent could
// write, so no link is followed on the way, and it is opened before the agent is there. `flags` of open(2).
[[nodiscard]] base::Result<base::Fd> open_own_file(std::string_view operation, const std::string& path, int flags);
// The settlement's, emptied.
[[nodiscard]] base::Result<base::Fd> open_report(const std::string& path);

// What a person has to know of how it ended, on the error stream.
void print_end(const Context& context, const session::Settlement& settlement, const plan::Plan& plan);

// The code of a launch that never came to execute the command.
[[nodiscard]] int code_of_refusal(const base::Error& error);

// Says the error, in the settlement too when there is a file for it, and returns the exit code.
int settle_refusal(const Context& context, const base::Error& error, const plan::Plan& plan, const base::Fd& file);

}  // namespace belljar::cli
