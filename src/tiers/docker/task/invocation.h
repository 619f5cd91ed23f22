// A request for one launch of a task, as it was captured.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "tiers/docker/task/ceilings.h"
#include "tiers/docker/task/phase.h"

namespace belljar::tiers::docker::task {

// What is asked for. No credential is in it: only whose, and by what variable it would be told.
struct Request {
  std::string attempt;  // 1 to 64 of a-z, 0-9, `-`; used once, ever
  std::string task;     // name of the task's storage
  Phase phase = Phase::kPlan;
  std::string agent;                 // of an adapter, or empty: a plain command
  std::vector<std::string> command;  // as it is executed
  std::string image_id;              // "sha256:…"
  std::string token;                 // name of the variable that holds the credential, or empty
  bool login = false;                // a file of the agent's login comes along
  std::string schema;                // its text, or empty
  std::string certificates;          // likewise: of the authorities that the agent trusts, PEM
  Ceilings ceilings{};
  uint64_t seconds = 0;  // from the capture to the deadline; never 0
};

// Every byte that counts, in one text.
[[nodiscard]] std::string encode(const Request& request);

// Where attempts are kept: Belljar's own state, which no guest sees.
struct Ledger {
  // Keeps it; an error when the attempt is known already.
  std::function<base::Status(const std::string& attempt, const std::string& request)> claim;
  // What was kept of it.
  std::function<base::Result<std::string>(const std::string& attempt)> kept;
};

// A captured request: frozen, known to the ledger, and the only thing that a task's container is made for. There is no
// way to make one but capture(), none to copy it, and none to change it.
class Invocation {
 public:
  // Refuses an attempt that was captured before, whatever it asked for then: its phase, deadline and commands stand.
  // The deadline runs from here.
  [[nodiscard]] static base::Result<Invocation> capture(Request request, Ledger ledger);
  Invocation(Invocation&&) = default;
  Invocation& operator=(Invocation&&) = default;
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;
  ~Invocation() = default;

  [[nodiscard]] const Request& request() const { return request_; }
  [[nodiscard]] const base::Deadline& deadline() const { return deadline_; }

  // Refuses unless it is, byte for byte, what the ledger has of this attempt, and its time is not up.
  [[nodiscard]] base::Status authenticate() const;

 private:
  Invocation(Request request, Ledger ledger, base::Deadline deadline)
      : request_(std::move(request)), ledger_(std::move(ledger)), deadline_(deadline) {}
  Request request_;
  Ledger ledger_;
  base::Deadline deadline_;
};

}  // namespace belljar::tiers::docker::task
