// A launch of a task by hand, up to the guest's proof, for tests that change something on the way.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "docker/task_storage.h"
#include "docker/world.h"
#include "guest/protocol.h"
#include "support/temp_dir.h"
#include "tiers/docker/task/invocation.h"
#include "tiers/docker/task/profile.h"

namespace belljar::testing {

// A ledger that forgets with the test.
class TestLedger {
 public:
  [[nodiscard]] tiers::docker::task::Ledger ledger();
  std::map<std::string, std::string> kept;
};

struct TaskOptions {
  tiers::docker::task::Phase phase = tiers::docker::task::Phase::kExecute;
  std::string agent{};
  std::string login{};   // content of a login's file
  std::string schema{};  // its text
  std::string token{};   // NAME=VALUE
};

class TaskLaunch {
 public:
  static constexpr const char* kSession = "00112233445566bb";

  // With `belljar-guest` at `guest`.
  TaskLaunch(const std::string& guest, TaskOptions options);
  ~TaskLaunch();

  // As task::prepare() makes it. Once.
  base::Result<tiers::docker::Prepared> prepare();
  // The evidence, or the refusal, of a launch that `weaken` has changed and nobody has looked at from outside.
  base::Result<guest::ProbeRecord> prove(const std::function<void(tiers::docker::Prepared&, nlohmann::json&)>& weaken);

  [[nodiscard]] std::string meeting() const { return state_ / (std::string("containers/") + kSession); }
  [[nodiscard]] std::string staged() const { return state_ / (std::string("credentials/") + kSession); }
  [[nodiscard]] const tiers::docker::task::Invocation& invocation() const { return *invocation_; }
  [[nodiscard]] const TaskVolumes& storage() const { return volumes_; }

 private:
  std::string guest_;
  TaskOptions options_;
  TempDir state_;
  TaskVolumes volumes_{"00112233445566cc"};
  TestLedger ledger_;
  std::optional<tiers::docker::task::Invocation> invocation_;
  std::optional<tiers::docker::Image> image_;
  std::optional<tiers::docker::Meeting> met_;
  plan::Plan plan_;
  tiers::docker::task::Credential credential_;
  std::optional<tiers::docker::task::SealedInput> schema_;
  std::unique_ptr<tiers::docker::task::Launch> launch_;
};

}  // namespace belljar::testing
