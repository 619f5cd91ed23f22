// The launcher, shut in. It parses what a hostile guest sends and what name servers answer, so before the agent's first
// instruction it gives up what it does not need for that.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "policy/policy.h"

namespace belljar::session {

// The ports that TCP may be connected to: those of the rules, 80 and 443 for rules that come later, and 53 for answers
// of name servers that are too long for UDP. `any` when a rule names every port.
struct DialPorts {
  bool any = false;
  std::vector<uint16_t> ports;
};
[[nodiscard]] DialPorts dial_ports(std::span<const policy::HostRule> rules);
// The same for a whole launch: with its upstream proxy, and any port where a person may be asked about any.
[[nodiscard]] DialPorts launcher_ports(const plan::Plan& plan);
// True when `rule` leads to no other port.
[[nodiscard]] bool covers(const DialPorts& ports, const policy::HostRule& rule);

// Per thread, since landlock(7) before ABI 8 and capabilities(7) are: no capability, and by landlock, where the kernel
// has it, no file, no TCP listener, no connection to another port and no abstract socket of other programs. What is
// open stays usable.
[[nodiscard]] base::Status seal_thread(const DialPorts& ports);

// Every thread: the filter of linux/launcher_rules.h. Each thread must have gone through seal_thread(). Tries it.
[[nodiscard]] base::Status seal_process();

// Closes what the caller of the program left open for it beyond 0, 1 and 2: only such descriptors are without
// close-on-exec. A sealed launcher could still use them.
[[nodiscard]] base::Status close_inherited();

// For a process that was forked from the launcher before the seal: closes all that it has of the launcher's but `kept`.
void close_all_but(std::vector<int> kept);

}  // namespace belljar::session
