#include "cli/audit_command.h"

#include <fcntl.h>

#include <cerrno>

#include "base/text.h"
#include "cli/options.h"
#include "cli/policy_options.h"
#include "egress/audit.h"

namespace belljar::cli {
namespace {

constexpr std::string_view kAuditHelp =
    "Usage: belljar audit verify [OPTION]... FILE\n"
    "Checks that no line of an audit file with a chain was changed, taken out or put in. Lines that are missing at "
    "the\n"
    "end are noticed when the last hash is compared with the one in the session's settlement.\n\n"
    "Example:\n"
    "  belljar audit verify --last 6d0c... audit.jsonl\n\n"
    "Options:\n";

}  // namespace

int audit_command(const Context& context, std::span<const std::string> arguments) {
  bool help = false;
  std::string last;
  const std::vector<Option> options{{"--last", "HASH", "the hash that the last line must have", keep(last)},
                                    {"--help", "", "this page", turn_on(help)}};
  const auto page = [&] { return print(context, std::string(kAuditHelp) + options_help(options)); };
  if (!arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h")) return page();
  if (arguments.empty() || arguments.front() != "verify") {
    return report(context, base::refuse("read the arguments", arguments.empty() ? "" : arguments.front(),
                                        "audit can verify", "belljar audit verify FILE")
                               .error());
  }
  const auto words = parse_options(arguments.subspan(1), options);
  if (!words) return report(context, words.error());
  if (help) return page();
  if (words->size() != 1) {
    return report(context,
                  base::refuse("read the arguments", "", "one file is needed", "belljar audit verify FILE").error());
  }
  const std::string& name = words->front();
  const base::Fd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return report(context, base::system_error("open", name, errno).error());
  const auto verified = egress::verify_audit(file.get(), name);
  if (!verified) {
    (void)report(context, verified.error());
    return 1;
  }
  if (!last.empty() && last != verified->chain) {
    (void)report(context, base::refuse("verify", name, "its last hash is " + verified->chain + ", not the one given",
                                       "lines are missing at the end, or were added")
                              .error());
    return 1;
  }
  return print(context, base::escape(name) + ": good: " + std::to_string(verified->lines) + " lines, last " +
                            verified->chain + "\n");
}

}  // namespace belljar::cli
