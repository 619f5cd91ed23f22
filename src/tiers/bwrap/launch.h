// The bwrap tier: namespaces that the distribution's bubblewrap makes, for hosts where it is what may make them.
// belljar-guest is its first process and does the rest.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "linux/cgroup.h"
#include "plan/plan.h"
#include "tiers/bwrap/arguments.h"
#include "tiers/jail/launch.h"

namespace belljar::tiers::bwrap {

// A launch, ready to be carried out. Data only, so that a test may take a protection away before start(). The strings
// of `config` point into the plan and into `arguments`.
struct Prepared {
  jail::Program program;
  guest::Config config;
  Arguments arguments;
  std::string guest_path;  // of belljar-guest
};

// As jail::prepare(): looks, changes nothing. Refuses what bubblewrap would have to make in a folder of the host.
[[nodiscard]] base::Result<Prepared> prepare(const plan::Plan& plan, const std::string& guest_path,
                                             const jail::Copies& copies = {});

// Starts bubblewrap and waits until init has handed out what it makes. As jail::start(): `meanwhile` (may be empty) is
// called once bubblewrap is at work, and the guest enters `group`, if there is one, before anything of it is made.
[[nodiscard]] base::Result<jail::Guest> start(Prepared& prepared, const jail::Stdio& stdio,
                                              const std::function<base::Status()>& meanwhile = {},
                                              const linux::Cgroup* group = nullptr);

}  // namespace belljar::tiers::bwrap
