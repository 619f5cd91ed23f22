// An ssh target that is this very machine: the real ssh and the real sshd, joined by a pipe in place of a network.
#pragma once

#include <memory>
#include <string>

#include "support/temp_dir.h"

namespace belljar::testing {

// With it `--target ssh:there` leads here, by a PATH that begins with folder()/bin. The account there has the home that
// $HOME names, as well as its XDG folders, so that a test finds both ends' files where it looks for one's. The machine
// itself has TestSshd, where loss of the link matters and addresses do.
class SshLoop {
 public:
  // Aborts when it cannot be made.
  SshLoop();
  // What has to be visible for a launch: keys, configurations, and copies of Belljar's programs in folder()/programs,
  // as people get them.
  [[nodiscard]] std::string folder() const { return folder_.path(); }

 private:
  TempDir folder_;
};

}  // namespace belljar::testing
