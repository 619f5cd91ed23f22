#include "session/end.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>

namespace belljar::session {
namespace {

constexpr int kDeadlineCode = 124;
constexpr int kFailedCode = 125;
constexpr int kNotExecutableCode = 126;
constexpr int kNotFoundCode = 127;

}  // namespace

void conclude(const End& end, Settlement& settlement) {
  settlement.exit_code = kFailedCode;
  settlement.reason = EndReason::kFailed;
  if (end.exec_error != 0) {
    const bool missing = end.exec_error == ENOENT || end.exec_error == ENOTDIR;
    settlement.reason = missing ? EndReason::kNotFound : EndReason::kNotExecutable;
    settlement.exit_code = missing ? kNotFoundCode : kNotExecutableCode;
    return;
  }
  if (end.status >= 0 && WIFEXITED(end.status)) {
    settlement.reason = EndReason::kExited;
    settlement.exit_code = WEXITSTATUS(end.status);
  } else if (end.status >= 0 && WIFSIGNALED(end.status)) {
    settlement.reason = EndReason::kSignaled;
    settlement.signal = WTERMSIG(end.status);
    settlement.exit_code = 128 + settlement.signal;
  } else if (end.told_to_end) {
    settlement.reason = EndReason::kStopped;
    settlement.signal = SIGKILL;
    settlement.exit_code = 128 + SIGKILL;
  }
  if (end.timed_out) {
    settlement.reason = EndReason::kDeadline;
    settlement.exit_code = kDeadlineCode;
  }
}

}  // namespace belljar::session
