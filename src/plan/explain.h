// A plan for people and for programs. Neither form ever holds the value of a secret variable.
#pragma once

#include <string>

#include "plan/plan.h"

namespace belljar::plan {

// Short and grouped, each mount with its reason; untrusted text escaped. Ends with a newline.
[[nodiscard]] std::string explain_text(const Plan& plan);

// One JSON object, indented, ASCII only. Text that is not UTF-8 is written as base::escape() shows it.
[[nodiscard]] std::string explain_json(const Plan& plan);

// One word each, as policies write them.
[[nodiscard]] const char* to_text(policy::Mode mode);
[[nodiscard]] const char* to_text(policy::Network network);
[[nodiscard]] const char* to_text(MountKind kind);
[[nodiscard]] const char* to_text(KeptKind kind);

// "2 GiB": in the largest unit that divides it, else in bytes.
[[nodiscard]] std::string size_text(uint64_t bytes);

}  // namespace belljar::plan
