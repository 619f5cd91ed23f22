// Which engines answer, for a recovery that has to do with what several launches left in them.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace belljar::tiers::docker {

// Each engine is waited for once, however much there is to do in it.
class Reach {
 public:
  explicit Reach(std::chrono::milliseconds patience) : patience_(patience) {}

  // Waits for the first answer of the engine at `socket` for as long as the patience lasts; what came of it counts from
  // then on. An error tells why there was none.
  [[nodiscard]] base::Status answers(const std::string& socket);

 private:
  std::chrono::milliseconds patience_;
  std::map<std::string, base::Status> known_;
};

// True when nothing at `socket` gave any answer of HTTP until the deadline: an engine that refuses is one that answers.
[[nodiscard]] bool is_silent(const std::string& socket, const base::Deadline& deadline);

}  // namespace belljar::tiers::docker
