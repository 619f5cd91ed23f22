// Where on this host a group for one guest can be made, by controller. Looks only; changes nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace belljar::linux {

enum class Controller : uint8_t { kMemory, kCpu, kPids };
inline constexpr std::array kControllers = {Controller::kMemory, Controller::kCpu, Controller::kPids};

// The kernel's name: "memory".
[[nodiscard]] const char* name_of(Controller controller);

struct CgroupGround {
  enum class Kind : uint8_t {
    kNone,     // nowhere, for `fault`
    kV1,       // below `folder`, the own group in that controller's hierarchy
    kV2,       // below `folder`, which gives the controller to its groups, or as the root of all can be made to
    kV2Alone,  // below `folder`, the own group, once its only process (the caller) has moved into a group below: a
               // group that has processes cannot give controllers to its groups (cgroups(7), "no internal processes")
    kSystemd,  // in a scope that the service manager is asked for
  };
  Kind kind = Kind::kNone;
  std::string folder{};
  std::string fault{};
  int version = 0;  // of the hierarchy that has the controller; 0: none has

  [[nodiscard]] bool usable() const { return kind != Kind::kNone; }
  bool operator==(const CgroupGround&) const = default;
};

// One for each of kControllers, in that order.
using CgroupGrounds = std::array<CgroupGround, kControllers.size()>;

// By the caller's own groups (/proc/self/cgroup) and what it may write. A real-time process is refused the cpu
// controller of v1 where the kernel divides real-time among groups (CONFIG_RT_GROUP_SCHED): a new group has none.
// `delegated` names the group that systemd was asked to delegate to the caller, if one was: that of the system marks
// what it delegates, a user's own does not (systemd 252).
[[nodiscard]] CgroupGrounds find_cgroup_grounds(std::string_view delegated = {});

}  // namespace belljar::linux
