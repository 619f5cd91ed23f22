// Where this process stands in the cgroup hierarchies, and whether groups can be made below.
#pragma once

#include <string_view>
#include <vector>

#include "linux/host_evidence.h"

namespace belljar::linux {

// A mounted hierarchy and the own group in it. Pure, for tests: from the texts of /proc/self/mountinfo and
// /proc/self/cgroup. `controllers` of a v2 mount is empty; they are in the group's own cgroup.controllers.
struct CgroupPlace {
  int version = 0;
  std::string folder;
  std::vector<std::string> controllers;
  std::string mount_point{};
};
[[nodiscard]] std::vector<CgroupPlace> cgroup_places(std::string_view mountinfo, std::string_view self_cgroup);

// memory, cpu and pids, as find_cgroup_grounds() says; where it has ground a trial group is made there and removed.
[[nodiscard]] std::vector<CgroupController> look_at_cgroups();

}  // namespace belljar::linux
