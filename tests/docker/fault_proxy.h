// A proxy in front of an engine's socket that fails at one request.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "support/temp_dir.h"

namespace belljar::testing {

// What becomes of a request: it never reaches the engine; it is done and the answer is lost, cut in half, or late.
enum class Fault { kNone, kRefused, kLost, kTruncated, kLate };

// Each connection is one request (`Connection: close`), numbered from 0 as they come.
class FaultProxy {
 public:
  FaultProxy(std::string engine, Fault fault, size_t at, std::chrono::milliseconds late = {});
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  [[nodiscard]] std::string socket() const { return folder_ / "s"; }
  [[nodiscard]] bool late_answer_came() const { return late_answer_came_; }
  // The first lines of what came so far.
  [[nodiscard]] std::vector<std::string> requests();

 private:
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
  std::vector<std::string> requests_;
  std::vector<std::thread> carriers_;
  std::thread server_;
};

}  // namespace belljar::testing
