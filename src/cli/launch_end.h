// The files and the end of a launch, as a person sees them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "cli/command.h"
#include "plan/plan.h"
#include "session/settlement.h"
#include "session/signals.h"

namespace belljar::cli {

// A file of the launcher's goes where the person said and nowhere else: it may lie in a folder that an agent could
// write, so no link is followed on the way, and it is opened before the agent is there. `flags` of open(2).
[[nodiscard]] base::Result<base::Fd> open_own_file(std::string_view operation, const std::string& path, int flags);

// The code of a launch that never came to execute the command.
[[nodiscard]] int code_of_refusal(const base::Error& error);

// Where the settlement goes as JSON; nowhere when `path` is empty.
struct ReportFile {
  std::string path{};
  base::Fd file{};
};
// The file is emptied.
[[nodiscard]] base::Result<ReportFile> open_report(const std::string& path);
// To the file, which must be there.
[[nodiscard]] base::Status write_report(const ReportFile& report, std::string_view text);

// The end of a launch: its report, then, with signals no more `held` that would have left it empty, what a person has
// to know, on the error stream. Returns the exit code.
int tell_end(const Context& context, const base::Result<session::Settlement>& settlement, const plan::Plan& plan,
             const ReportFile& report, std::optional<session::SignalsHeld>& held);
// The same of a launch that did not begin.
int tell_refusal(const Context& context, const base::Error& error, const plan::Plan& plan, const ReportFile& report);

}  // namespace belljar::cli
