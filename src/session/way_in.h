// The ports of this host that lead into the guest, as the launcher holds them.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "egress/exposure.h"
#include "policy/policy.h"
#include "tiers/jail/launch.h"

namespace belljar::session {

class WayIn {
 public:
  WayIn() = default;
  WayIn(const WayIn&) = delete;
  WayIn& operator=(const WayIn&) = delete;
  ~WayIn() { close(); }

  // Takes the ports; before the guest is there, so that a port that is not to be had costs nothing. Null for none.
  static base::Result<std::unique_ptr<egress::Exposure>> listen(const std::vector<policy::ExposedPort>& ports);
  // Serves them on a thread of its own, when there are any, which shuts itself in by seal_thread() before this returns.
  // `guest` must outlive it.
  base::Status open(tiers::jail::Guest& guest, std::unique_ptr<egress::Exposure> exposure,
                    const std::vector<policy::ExposedPort>& ports);
  // A socket of the guest's network, or an invalid one: init's answer.
  void give(base::Fd socket);
  // Closes ports and connections.
  void close();

 private:
  std::unique_ptr<egress::Exposure> exposure_;
  std::thread thread_;
};

}  // namespace belljar::session
