#include "cli/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.h"

namespace belljar::cli {
namespace {

constexpr int kOwnFailure = 125;

constexpr std::string_view kDoctorHelp =
    "Usage: belljar doctor [--json]\n"
    "\n"
    "Tries what a launch needs, shows what this host can do, and for each gap how to close it.\n"
    "Changes nothing. Exit code 0: the jail can start here; 1: it cannot.\n"
    "\n"
    "Examples:\n"
    "  belljar doctor\n"
    "  belljar doctor --json | jq '.facts[] | select(.ok | not)'\n";

std::string_view name_of(linux::Need need) {
  switch (need) {
    case linux::Need::kJail:
      return "jail";
    case linux::Need::kHardening:
      return "hardening";
    case linux::Need::kLimits:
      return "limits";
    case linux::Need::kByName:
      return "by_name";
    case linux::Need::kWorkspace:
      return "workspace";
    case linux::Need::kBwrap:
      return "bwrap";
    case linux::Need::kDocker:
      return "docker";
  }
  return "";
}

std::string_view purpose_of(linux::Need need) {
  switch (need) {
    case linux::Need::kJail:
      return "the jail needs it";
    case linux::Need::kHardening:
      return "a second wall; the jail starts without it";
    case linux::Need::kLimits:
      return "for limits of memory, cpu and pids";
    case linux::Need::kByName:
      return "for programs that know no proxy";
    case linux::Need::kWorkspace:
      return "for overlay workspaces";
    case linux::Need::kBwrap:
      return "for the bwrap tier";
    case linux::Need::kDocker:
      return "for the docker tier";
  }
  return "";
}

// Escaped line by line: a remedy's own line ends stay.
std::string escape_lines(std::string_view text, std::string_view indent) {
  std::string out;
  for (const std::string_view line : base::split(text, '\n')) {
    if (!out.empty()) out += '\n';
    if (!line.empty()) out += std::string(indent) + base::escape(line);
  }
  return out;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string{} : value;
}

struct Colours {
  std::string_view good, bad, mild, plain;
};
constexpr Colours kColours{"\033[32m", "\033[31m", "\033[33m", "\033[0m"};
constexpr Colours kNoColours{};

}  // namespace

bool wants_colour(std::FILE* out) {
  return environment("NO_COLOR").empty() && environment("TERM") != "dumb" && isatty(fileno(out)) == 1;
}

std::string doctor_text(const linux::HostEvidence& evidence, const std::vector<linux::HostFact>& facts, bool colour) {
  const Colours& colours = colour ? kColours : kNoColours;
  size_t width = 0;
  for (const linux::HostFact& fact : facts) width = std::max(width, fact.what.size());
  std::string out = "Linux " + base::escape(evidence.kernel) + ", " + base::escape(evidence.machine) + ", " +
                    (evidence.uid == 0 ? "root" : "uid " + std::to_string(evidence.uid)) + "\n\n";
  for (const linux::HostFact& fact : facts) {
    const bool stops = !fact.ok && fact.need == linux::Need::kJail;
    out += fact.ok ? colours.good : stops ? colours.bad : colours.mild;
    out += fact.ok ? "  ok    " : stops ? "  NO    " : "  no    ";
    out += colours.plain;
    out += fact.what + std::string(width - fact.what.size() + 2, ' ') + base::escape(fact.why) + "\n";
  }
  for (const linux::HostFact& fact : facts) {
    if (fact.ok) continue;
    out +=
        "\n" + fact.what + " (" + std::string(purpose_of(fact.need)) + "):\n" + escape_lines(fact.remedy, "  ") + "\n";
  }
  out += linux::jail_can_start(facts) ? "\nThe jail can start here.\n" : "\nThe jail cannot start here.\n";
  return out;
}

std::string doctor_json(const linux::HostEvidence& evidence, const std::vector<linux::HostFact>& facts) {
  nlohmann::ordered_json report;
  report["version"] = 1;
  report["kernel"] = evidence.kernel;
  report["machine"] = evidence.machine;
  report["uid"] = evidence.uid;
  report["jail"] = linux::jail_can_start(facts);
  report["landlock_abi"] = evidence.landlock_abi;
  report["facts"] = nlohmann::ordered_json::array();
  for (const linux::HostFact& fact : facts) {
    report["facts"].push_back({{"key", fact.key},
                               {"need", name_of(fact.need)},
                               {"ok", fact.ok},
                               {"what", fact.what},
                               {"why", fact.why},
                               {"remedy", fact.remedy}});
  }
  // A path need not be UTF-8; what is not is replaced, so that the dump cannot fail.
  return report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int run_doctor(std::span<const std::string> arguments, std::FILE* out, std::FILE* err) {
  bool json = false;
  std::string text;
  for (const std::string& argument : arguments) {
    if (argument == "--json") {
      json = true;
    } else if (argument == "--help" || argument == "-h") {
      text = kDoctorHelp;
    } else {
      std::fprintf(err, "belljar: doctor: unknown argument %s (it takes --json; see 'belljar doctor --help')\n",
                   base::shell_quote(argument).c_str());
      return kOwnFailure;
    }
  }
  int result = 0;
  if (text.empty()) {
    const linux::HostEvidence evidence = linux::gather_evidence(environment("PATH"), environment("DOCKER_HOST"));
    const std::vector<linux::HostFact> facts = linux::judge(evidence);
    text = json ? doctor_json(evidence, facts) : doctor_text(evidence, facts, wants_colour(out));
    result = linux::jail_can_start(facts) ? 0 : 1;
  }
  if (std::fwrite(text.data(), 1, text.size(), out) != text.size() || std::fflush(out) != 0) {
    std::fprintf(err, "belljar: doctor: cannot write the report\n");
    return kOwnFailure;
  }
  return result;
}

}  // namespace belljar::cli
