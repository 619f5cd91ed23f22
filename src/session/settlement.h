// The record at the end of a session.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "egress/audit.h"
#include "egress/denial.h"
#include "egress/journal.h"
#include "guest/protocol.h"
#include "plan/plan.h"
#include "workspace/settled.h"

namespace belljar::session {

enum class EndReason : uint8_t {
  kExited,         // the command ended by itself
  kSignaled,       // by a signal, `signal`
  kDeadline,       // the wall time of the policy was up
  kNotFound,       // the command could not be executed: no such program
  kNotExecutable,  // or it is not one
  kLost,           // the launcher was killed, and with it the guest
  kStopped,        // the launcher was told to end and the command did not
  kFailed,         // Belljar could not go on
};

// A limit that the guest has met, by a counter of the kernel's or by what it left.
struct LimitHit {
  enum class Kind : uint8_t {
    kOutOfMemory,  // the kernel killed processes at the memory limit
    kTooManyPids,  // it refused to make one more
    kNoSpace,      // the scratch was full at the end
    kNoInodes,     // or had no file left
    kDeadline,
  };
  Kind kind = Kind::kDeadline;
  uint64_t limit = 0;  // bytes, processes and threads, files, seconds
  uint64_t count = 0;  // how often; 0 where nobody counts
};

[[nodiscard]] const char* to_text(LimitHit::Kind kind);
// One line for a person: "out of memory: 3 processes ended at the limit of 64 MiB (--memory)".
[[nodiscard]] std::string to_text(const LimitHit& hit);

struct Usage {
  uint64_t cpu_us = 0;                 // user and system; without cgroup v2 only of processes that were waited for
  uint64_t largest_process_bytes = 0;  // resident, of the largest one
  std::optional<uint64_t> peak_memory_bytes;  // of the whole guest, caches and scratch included; with a cgroup
  uint64_t scratch_bytes = 0;                 // at the end
  uint64_t scratch_files = 0;
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
  std::vector<LimitHit> limits_hit;
  Usage usage;
  std::vector<egress::Denial> denials;
  uint64_t unlisted_denials = 0;
  workspace::Settled after;  // of the work after the guest's end
  std::optional<egress::AuditEnd> audit;
  std::vector<egress::Use> allowed;  // hosts that were reached
  uint64_t unlisted_allowed = 0;
  std::vector<std::string> unreleased;  // what could not be released; empty for a jail, which the kernel ends whole
};

[[nodiscard]] const char* to_text(EndReason reason);

// One JSON object, indented, with the badge and the command of `plan` (of an empty one when there was none). No secret
// of the plan is in it.
[[nodiscard]] std::string settlement_json(const Settlement& settlement, const plan::Plan& plan);

}  // namespace belljar::session
