// A container engine of the tests' own.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "support/process.h"
#include "support/temp_dir.h"

namespace belljar::testing {

// A dockerd on a socket, data root and exec root of its own, without networks of the host's (no bridge, no packet
// filter rules), started as root; it and its containerd end when the object goes, or the process dies, and its mounts
// and cgroups with them. Aborts when it cannot be started.
class OwnEngine {
 public:
  OwnEngine();
  ~OwnEngine();
  OwnEngine(const OwnEngine&) = delete;
  OwnEngine& operator=(const OwnEngine&) = delete;

  [[nodiscard]] std::string socket() const { return folder_ / "sock"; }
  // A process in its network namespace.
  [[nodiscard]] pid_t process() const { return daemon_->pid(); }

 private:
  TempDir folder_;
  std::optional<Process> daemon_;
};

// The engine that a test may use: for root one of its own; for others the one whose socket BELLJAR_TEST_ENGINE names,
// which tools/as-ordinary-user has started for them. Empty when there is none.
class TestEngine {
 public:
  TestEngine();
  [[nodiscard]] bool there() const { return !socket_.empty(); }
  [[nodiscard]] const std::string& socket() const { return socket_; }
  // Of the engine's network namespace, when it is one of this program's own; else -1.
  [[nodiscard]] pid_t process() const { return own_ ? own_->process() : -1; }

 private:
  std::unique_ptr<OwnEngine> own_;
  std::string socket_;
};

// A root file system with a static busybox and its links, as a tar archive at `path`. From BELLJAR_TEST_MACHINE.
void make_busybox_root(const std::string& path);

}  // namespace belljar::testing
