// A host whose kernel lets chosen programs alone make user namespaces.
#pragma once

#include <sys/types.h>

#include <latch>
#include <string>
#include <thread>

#include "base/fd.h"

namespace belljar::testing {

// As Ubuntu's AppArmor does it (kernel.apparmor_restrict_unprivileged_userns): whoever the calling thread starts from
// here on gets EPERM for a user namespace, unless it has CAP_SYS_ADMIN, or runs `profiled`, the one program that a
// profile allows them, or is what that has started in a pid namespace. A filter of seccomp(2) asks this object, which
// must live as long as anybody who may ask.
class NamespaceRestriction {
 public:
  explicit NamespaceRestriction(std::string profiled);
  NamespaceRestriction(const NamespaceRestriction&) = delete;
  NamespaceRestriction& operator=(const NamespaceRestriction&) = delete;

 private:
  void serve(const std::stop_token& stop) const;
  [[nodiscard]] bool allows(pid_t pid) const;

  std::string profiled_;
  base::Fd listener_;
  std::latch listening_{1};
  std::jthread thread_;
};

}  // namespace belljar::testing
