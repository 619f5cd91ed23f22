#include "cli/launch_end.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/io.h"
#include "base/text.h"
#include "session/limits.h"

namespace belljar::cli {
namespace {

std::string subject_of(const egress::Denial& denial) {
  if (denial.host.empty()) return "a request without a host";
  return base::escape(denial.host) + (denial.looked_up() ? " (looked up)" : ":" + std::to_string(denial.port));
}

// How many lines of a kind a person gets at the end: an agent decides how many there could be.
constexpr size_t kMostLines = 20;

// A line for each of `all`, by `line_of`, then how many `more` there are.
template <typename List>
void print_some(const Context& context, const List& all, auto&& line_of, const char* more) {
  const size_t shown = std::min(all.size(), kMostLines);
  for (size_t i = 0; i < shown; ++i) std::fprintf(context.err, "belljar: %s\n", line_of(all[i]).c_str());
  if (all.size() == shown) return;
  std::fprintf(context.err, "belljar: %s: %zu more (--report FILE lists them)\n", more, all.size() - shown);
}

void print_denials(const Context& context, const session::Settlement& settlement) {
  const auto line_of = [](const egress::Denial& denial) {
    std::string line = "refused " + subject_of(denial) + ": " + std::string(egress::code_of(denial.reason));
    if (denial.count > 1) line += ", " + std::to_string(denial.count) + " times";
    if (!denial.remedy.empty()) line += " (to allow it: " + base::escape(denial.remedy) + ")";
    return line;
  };
  print_some(context, settlement.denials, line_of, "refused");
  if (settlement.unlisted_denials > 0) {
    std::fprintf(context.err, "belljar: refused %llu times more, of hosts that are too many to be listed\n",
                 static_cast<unsigned long long>(settlement.unlisted_denials));
  }
}

// What a person has to know of the work after the end, a line for each kind.
void print_after(const Context& context, const workspace::Settled& after) {
  const auto list = [](size_t count, const std::string& first) {
    return "'" + base::escape(first) + "'" + (count > 1 ? " and " + std::to_string(count - 1) + " more" : "");
  };
  if (const auto& changes = after.changes(); !changes.empty()) {
    std::fprintf(context.err, "belljar: changed in the session's own copies only, and gone: %s\n",
                 list(changes.size(), changes.front().path).c_str());
  }
  const auto& quarantined = after.quarantined();
  const auto moved = std::ranges::find_if(quarantined, [](const auto& one) { return !one.moved_to.empty(); });
  if (moved != quarantined.end()) {
    const auto count = std::ranges::count_if(quarantined, [](const auto& one) { return !one.moved_to.empty(); });
    std::fprintf(context.err, "belljar: put into quarantine, since programs would obey it: %s, to '%s'\n",
                 list(static_cast<size_t>(count), moved->path).c_str(), base::escape(moved->moved_to).c_str());
  }
  print_some(context, after.notes(), [](const std::string& text) { return base::escape(text); }, "noted");
  print_some(
      context, after.unreleased(), [](const std::string& text) { return "not done: " + base::escape(text); },
      "not done");
}

void print_end(const Context& context, const session::Settlement& settlement, const plan::Plan& plan) {
  const std::string program = base::escape(plan.command.empty() ? "" : plan.command.front());
  switch (settlement.reason) {
    case session::EndReason::kNotFound:
      std::fprintf(context.err, "belljar: execute '%s': not found in the guest (see 'belljar plan')\n",
                   program.c_str());
      break;
    case session::EndReason::kNotExecutable:
      std::fprintf(context.err, "belljar: execute '%s': cannot be executed in the guest\n", program.c_str());
      break;
    case session::EndReason::kFailed:
      std::fprintf(context.err, "belljar: run '%s': %s\n", program.c_str(),
                   settlement.error.empty() ? "the guest's init ended without a word" : settlement.error.c_str());
      break;
    default:
      break;
  }
  for (const session::LimitHit& hit : settlement.limits_hit) {
    std::fprintf(context.err, "belljar: run '%s': %s\n", program.c_str(), session::to_text(hit).c_str());
  }
  print_denials(context, settlement);
  print_after(context, settlement.after);
  if (const auto& audit = settlement.audit; audit && audit->lost > 0) {
    std::fprintf(context.err, "belljar: write the audit file '%s': %llu events were lost: %s\n",
                 base::escape(plan.audit.file).c_str(), static_cast<unsigned long long>(audit->lost),
                 ::strerror(audit->error));
  }
}

session::Settlement settlement_of_refusal(const base::Error& error) {
  session::Settlement out;
  out.exit_code = code_of_refusal(error);
  if (out.exit_code == 127) out.reason = session::EndReason::kNotFound;
  if (out.exit_code == 126) out.reason = session::EndReason::kNotExecutable;
  out.error = error.message();
  return out;
}

}  // namespace

base::Result<base::Fd> open_own_file(std::string_view operation, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CREAT | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  how.mode = 0600;
  how.resolve = RESOLVE_NO_SYMLINKS;
  base::Fd file(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  if (!file) {
    return base::system_error(operation, path, errno, errno == ELOOP ? "a link is in the way; name the real path" : "");
  }
  struct stat found{};
  if (::fstat(file.get(), &found) != 0) return base::system_error(operation, path, errno);
  if (!S_ISREG(found.st_mode) || found.st_nlink != 1) {
    return base::refuse(operation, path, "it is not a regular file with one name, refusing", "name a new file");
  }
  return file;
}

base::Result<ReportFile> open_report(const std::string& path) {
  constexpr std::string_view kOperation = "open the report";
  if (path.empty()) return ReportFile{};
  BELLJAR_ASSIGN(base::Fd file, open_own_file(kOperation, path, O_WRONLY));
  if (::ftruncate(file.get(), 0) != 0) return base::system_error(kOperation, path, errno);
  return ReportFile{path, std::move(file)};
}

base::Status write_report(const ReportFile& report, std::string_view text) {
  constexpr std::string_view kOperation = "write the report";
  if (!base::write_all(report.file.get(), text)) return base::system_error(kOperation, report.path, errno);
  if (report.path.empty()) return {};  // of a target: its launcher's alone
  // The bare call: the sealed launcher may ask of descriptors, and glibc's fstat() asks of a path that is empty.
  struct stat found{};
  if (::syscall(SYS_fstat, report.file.get(), &found) != 0) return base::system_error(kOperation, report.path, errno);
  if (found.st_nlink == 0) {
    return base::refuse(kOperation, report.path,
                        "the file was removed meanwhile, and what has its name is not this launch's",
                        "name one where the guest cannot write");
  }
  return {};
}

int code_of_refusal(const base::Error& error) {
  if (error.operation != "find the command") return kFailed;
  return error.code == ENOENT ? 127 : error.code == EACCES ? 126 : kFailed;
}

int tell_end(const Context& context, const base::Result<session::Settlement>& settlement, const plan::Plan& plan,
             const ReportFile& report_file, std::optional<session::SignalsHeld>& held) {
  base::Status written;
  if (report_file.file) {
    written = write_report(report_file,
                           settlement ? session::settlement_json(*settlement, plan)
                                      : session::settlement_json(settlement_of_refusal(settlement.error()), plan));
  }
  held.reset();
  if (!settlement) {
    report(context, settlement.error());
    return code_of_refusal(settlement.error());
  }
  print_end(context, *settlement, plan);
  return written ? settlement->exit_code : report(context, written.error());
}

int tell_refusal(const Context& context, const base::Error& error, const plan::Plan& plan, const ReportFile& report) {
  std::optional<session::SignalsHeld> none;
  return tell_end(context, std::unexpected(error), plan, report, none);
}

}  // namespace belljar::cli
