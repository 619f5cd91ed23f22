// A small internet of the test's own: other hosts with public addresses that only this test can reach.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

namespace belljar::testing {

// Moves this process into an own mount and network namespace (as an ordinary user: into a user namespace first), which
// plays the host that belljar runs on, and joins it by a veth pair to a second network namespace, the internet.
// The addresses look public, because the way out refuses private and documentation ranges; there is no uplink, so
// nothing can leave. /etc/hosts and /etc/resolv.conf are covered with the test's own, /home with an own tmpfs.
// All of it is gone when the process ends. Must be made while the process has one thread. Aborts when it cannot.
class TestHosts {
 public:
  static constexpr const char* kInternet = "45.45.45.2";
  static constexpr const char* kInternet6 = "2606:4545::2";
  static constexpr const char* kHost = "45.45.45.1";  // the host's own address on that wire

  // Every one of `names` resolves to kInternet, those of `other_names` to what they are given.
  explicit TestHosts(const std::vector<std::string>& names, const std::map<std::string, std::string>& other_names = {});
  ~TestHosts();
  TestHosts(const TestHosts&) = delete;
  TestHosts& operator=(const TestHosts&) = delete;

  // Starts a program on the internet side.
  [[nodiscard]] Process start(Command command) const;

  // Makes `command` run as who started the test: an ordinary user again, without capabilities, when it was one.
  [[nodiscard]] Command as_caller(Command command) const;

  // A folder on disk at /home/NAME, owned by the caller; removed with this object.
  [[nodiscard]] std::string home() const { return "/home/belljar-tester"; }

  // Rewrites resolv.conf in place, for this test alone.
  void set_name_servers(const std::string& resolv_conf) const;

  // Shows a folder of the host at `target` too.
  void show(const std::string& source, const std::string& target);

 private:
  void cover_file(const std::string& target, const std::string& source);

  TempDir temp_;
  uid_t uid_;
  gid_t gid_;
  std::unique_ptr<Process> internet_;  // holds the second network namespace
  base::Fd internet_net_;
  std::vector<std::string> covered_;  // mount points, in order
};

// A certificate authority and one certificate for `names`, made by openssl(1) in `folder`: ca.pem, cert.pem, key.pem.
void make_certificates(const std::string& folder, const std::vector<std::string>& names);

}  // namespace belljar::testing
