// The ways out that bench_egress compares, each set up between the same guest and the same internet.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "egress_load.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/test_hosts.h"

namespace belljar::bench {

inline constexpr uint16_t kFileService = 80;     // nginx: one big file
inline constexpr uint16_t kHelloService = 8443;  // nginx: reads a TLS hello, answers `ok` and the end
inline constexpr uint16_t kHoldService = 9000;   // accepts and keeps silent

struct Way {
  std::string name;
  Door door;
  bool in_guest = true;   // else the client stands beside the servers
  pid_t pid = -1;         // of what carries the bytes; with its descendants it is what is measured
  std::string missing{};  // why it takes no part, if it does not
};

// Guest, host and internet as three network namespaces, joined by veth pairs; this process is the host. nginx and a
// holder of connections serve on the internet's side. All of it ends with this object.
class World {
 public:
  explicit World(size_t file_size);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  [[nodiscard]] const std::vector<Way>& ways() const { return ways_; }

  // Runs `work` in a process of its own where the way's client stands and returns the numbers it made.
  std::vector<double> run(const Way& way, const std::function<std::vector<double>()>& work) const;
  // The same, but the process stays, with all it has opened, until the returned descriptor is closed.
  base::Fd run_and_stay(const Way& way, const std::function<std::vector<double>()>& work,
                        std::vector<double>& numbers) const;

 private:
  void make_guest();
  void serve();
  void add_ours();
  void add_bare(int loops);
  void add_haproxy();
  void add_tinyproxy();
  void add_squid();
  // A listening socket made in the guest's network namespace, and its port.
  base::Fd listen_in_guest(uint16_t& port) const;
  pid_t fork_child(const std::function<void()>& body);
  bool add_daemon(const std::string& name, const std::vector<std::string>& argv, Door door);

  testing::TestHosts hosts_;
  testing::TempDir temp_;
  std::optional<testing::Process> guest_;
  base::Fd host_net_, guest_net_, internet_net_;
  std::vector<testing::Process> daemons_;
  std::vector<pid_t> children_;
  std::vector<Way> ways_;
};

// Of a process and all its descendants.
double cpu_seconds(pid_t pid);
double private_bytes(pid_t pid);

}  // namespace belljar::bench
