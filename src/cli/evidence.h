// What a probe found, for a person.
#pragma once

#include <string>

#include "guest/protocol.h"

namespace belljar::cli {

[[nodiscard]] std::string evidence_text(const guest::ProbeRecord& record);

}  // namespace belljar::cli
