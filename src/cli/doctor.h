// `belljar doctor`: what this host can do, each gap with its remedy.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "linux/host_evidence.h"
#include "linux/host_facts.h"

namespace belljar::cli {

// How text is shown: colours only on a terminal, and never with NO_COLOR set to something (https://no-color.org) or
// TERM=dumb.
[[nodiscard]] bool wants_colour(std::FILE* out);

// The report for a person. What may come from elsewhere (paths, names) is escaped.
[[nodiscard]] std::string doctor_text(const linux::HostEvidence& evidence, const std::vector<linux::HostFact>& facts,
                                      bool colour);

// The report for a program, one JSON object and a newline:
//   {"version": 1, "kernel", "machine", "uid", "jail": BOOL, "landlock_abi", "facts":
//     [{"key", "need": "jail"|"hardening"|"limits"|"workspace"|"bwrap"|"docker", "ok", "what", "why", "remedy"}]}
// Keys are only ever added.
[[nodiscard]] std::string doctor_json(const linux::HostEvidence& evidence, const std::vector<linux::HostFact>& facts);

// Runs the command. `arguments` are those after `doctor`: nothing, `--json` or `--help`. Returns the exit code: 0 when
// the jail can start here, 1 when it cannot, 125 for a wrong argument or when `out` cannot be written.
[[nodiscard]] int run_doctor(std::span<const std::string> arguments, std::FILE* out, std::FILE* err);

}  // namespace belljar::cli
