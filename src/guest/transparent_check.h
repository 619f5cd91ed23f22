// The probe's look at the way out for programs that know no proxy, as such a program takes it.
#pragma once

#include "base/fd.h"
#include "guest/finding.h"

namespace belljar::guest {

// Connects to an address of each synthetic range (linux/local_route.h) that stands for no host: without the route there
// is no network, without the redirect nobody listens.
[[nodiscard]] Finding check_redirect(bool v6);

// A question to the guest's resolver, asked early and read late, so that the launcher's answer costs no waiting.
class ResolverQuestion {
 public:
  void ask();
  // Waits for the answer; the launcher has what the launch as a whole may take.
  [[nodiscard]] Finding check();

 private:
  base::Fd socket_;
  int error_ = 0;
};

}  // namespace belljar::guest
