// An image with both real agents, built by the program under test, and the internet that they see.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "docker/world.h"
#include "support/belljar.h"
#include "support/test_hosts.h"

namespace belljar::testing {

// One for all cases of a program, since it is what takes time. Its base trusts the certificate authority of the tests,
// as a base may that a company has made. Needs root, and BELLJAR_TEST_IMAGE, which ./dev test sets.
class AgentImage {
 public:
  // Made at the first call. Aborts with the program's own words when it cannot be.
  static AgentImage& get();

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] TestHosts& hosts() { return hosts_; }
  // A folder with ca.pem, cert.pem and key.pem for the names of all model hosts.
  [[nodiscard]] const std::string& certificates() const { return folder_.path(); }
  // With this engine, and the state folder in which the image is registered.
  [[nodiscard]] Command with_engine(Command command) const;

  // tests/support/mock_model.js on the other side, which does `steps` with whoever asks, and gives `answer`. It has its
  // plan and its log in `folder`: model.json, log.
  [[nodiscard]] std::unique_ptr<Process> start_model(const std::string& folder, const std::string& steps,
                                                     const std::string& answer) const;

 private:
  AgentImage();
  // The test's own internet is there before the engine, which then sees the same files as belljar does.
  TestHosts hosts_;
  TempDir folder_;
  std::string id_;
};

}  // namespace belljar::testing
