// A socket in the place of an engine's, for tests of what comes from it.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace belljar::tiers::docker {

// Serves one connection at a time on a thread of its own. `serve` is given the connected descriptor; when it returns
// the connection is closed.
class FakeEngine {
 public:
  explicit FakeEngine(std::function<void(int)> serve);
  ~FakeEngine();
  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;

  [[nodiscard]] const std::string& socket() const { return path_; }

 private:
  std::string folder_;
  std::string path_;
  base::Fd listener_;
  std::thread thread_;
};

// Reads a request's head and, with Content-Length, its body.
std::string read_request(int fd);
void say(int fd, std::string_view text);

}  // namespace belljar::tiers::docker
