// A proxy in front of an engine's socket that fails at one request.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "support/temp_dir.h"

namespace belljar::testing {

// What becomes of a request: it never reaches the engine; it is done and the answer is lost, cut in half, or late; it
// is done and who asked is killed, and all its processes with it.
enum class Fault { kNone, kRefused, kLost, kTruncated, kLate, kKilled };

[[nodiscard]] const char* fault_name(Fault fault);

// A deadline holds when whoever has it gives up no later than so long after it, also on a machine that is busy:
// cleaning up then has a time of its own.
inline constexpr auto kDeadlineMargin = std::chrono::seconds(2);

// By SIGKILL, with its children, which are the settlers of launchers. All have ended when it returns.
void kill_family(pid_t pid);

// Each connection is one request (`Connection: close`), numbered from 0 as they come.
class FaultProxy {
 public:
  using Clock = std::chrono::steady_clock;

  FaultProxy(std::string engine, Fault fault, size_t at, std::chrono::milliseconds late = {});
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  [[nodiscard]] std::string socket() const { return folder_ / "s"; }
  [[nodiscard]] bool late_answer_came() const { return late_answer_came_; }
  // Who asks, for kKilled; once.
  void expect(pid_t asker) { asker_.set_value(asker); }
  // The first lines of what came so far.
  [[nodiscard]] std::vector<std::string> requests();
  // From the first request that holds `begun` to the one after the failing one, or to `end` when there was none: so
  // long it took the asker to give up and begin to clean up.
  [[nodiscard]] Clock::duration gave_up_after(std::string_view begun, Clock::time_point end);

 private:
  struct Seen {
    std::string line;  // the first of the request: "GET /v1.41/info HTTP/1.1"
    Clock::time_point at;
  };
  std::vector<Seen> seen();
  void serve();
  void carry(base::Fd client, size_t number);

  const std::string engine_;
  const Fault fault_;
  const size_t at_;
  const std::chrono::milliseconds late_;
  std::atomic<bool> late_answer_came_ = false;
  TempDir folder_;
  base::Fd listener_;
  std::mutex mutex_;
  std::vector<Seen> seen_;
  std::promise<pid_t> asker_;
  std::vector<std::thread> carriers_;
  std::thread server_;
};

}  // namespace belljar::testing
