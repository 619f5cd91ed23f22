// The record at the end of a session.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "egress/denial.h"
#include "guest/protocol.h"
#include "plan/plan.h"

namespace belljar::session {

enum class EndReason : uint8_t {
  kExited,         // the command ended by itself
  kSignaled,       // by a signal, `signal`
  kDeadline,       // the wall time of the policy was up
  kNotFound,       // the command could not be executed: no such program
  kNotExecutable,  // or it is not one
  kStopped,        // the launcher was told to end and the command did not
  kFailed,         // Belljar could not go on
};

struct Settlement {
  std::string session;  // random, 16 hex digits
  EndReason reason = EndReason::kFailed;
  int exit_code = 125;  // what `belljar run` exits with
  int signal = 0;
  std::string error;    // why Belljar could not go on; empty otherwise
  std::string started;  // UTC, RFC 3339
  std::chrono::nanoseconds duration{0};
  guest::ProbeRecord evidence;
  std::vector<egress::Denial> denials;
  uint64_t unlisted_denials = 0;
  std::vector<std::string> unreleased;  // what could not be released; empty for a jail, which the kernel ends whole
};

[[nodiscard]] const char* to_text(EndReason reason);

// One JSON object, indented, with the badge and the command of `plan` (of an empty one when there was none). No secret
// of the plan is in it.
[[nodiscard]] std::string settlement_json(const Settlement& settlement, const plan::Plan& plan);

}  // namespace belljar::session
