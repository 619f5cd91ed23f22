#include "linux/cgroup_ground.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "linux/host_cgroups.h"

namespace belljar::linux {
namespace {

using Kind = CgroupGround::Kind;

std::string read_or_empty(const std::string& path) {
  return base::read_file(path).value_or(std::string{});
}

bool names(const std::string& path, std::string_view word) {
  std::string text = read_or_empty(path);
  std::ranges::replace(text, '\n', ' ');
  return std::ranges::any_of(base::split(text, ' '), [&](std::string_view each) { return each == word; });
}

bool may_write(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

// What making a group in `folder` and moving into it asks for; errno, or 0.
int refusal_of(const std::string& folder) {
  return may_write(folder) && may_write(folder + "/cgroup.procs") ? 0 : errno;
}

// The root of all groups alone has no cgroup.type (cgroup-v2.rst, "Core Interface Files"); the root of a cgroup
// namespace looks like one but is none.
bool is_true_root(const std::string& folder) {
  return ::access((folder + "/cgroup.type").c_str(), F_OK) != 0 &&
         ::access((folder + "/cgroup.controllers").c_str(), F_OK) == 0;
}

bool is_alone_in(const std::string& folder) {
  return read_or_empty(folder + "/cgroup.procs") == std::to_string(::getpid()) + "\n";
}

// systemd changes and removes what it has not delegated (systemd.resource-control(5), Delegate=). It marks what it has.
bool is_marked_delegated(const std::string& folder) {
  char mark = 0;
  return (::getxattr(folder.c_str(), "user.delegate", &mark, 1) == 1 ||
          ::getxattr(folder.c_str(), "trusted.delegate", &mark, 1) == 1) &&
         mark == '1';
}

bool is_systemds() {
  return ::access("/run/systemd/system", F_OK) == 0;
}

std::string cannot_write(const std::string& folder, int code) {
  return "no group can be made in " + folder + ": " + std::strerror(code);
}

CgroupGround look_at_v2(const CgroupPlace& place, const std::string& controller, std::string_view delegated) {
  const std::string& own = place.folder;
  CgroupGround out{.kind = Kind::kNone, .folder = own, .fault = "", .version = 2};
  const auto found = [&](Kind kind, std::string folder) {
    out.kind = kind;
    out.folder = std::move(folder);
    return out;
  };
  const int refused = refusal_of(own);
  if (refused == 0) {
    if (is_true_root(own) || names(own + "/cgroup.subtree_control", controller)) return found(Kind::kV2, own);
    // Only where systemd has said so: a container's engine wants to put more processes into the group.
    const bool is_delegated = is_marked_delegated(own) || (!delegated.empty() && base::name_of(own) == delegated);
    if (is_delegated && may_write(own + "/cgroup.subtree_control") && is_alone_in(own)) {
      return found(Kind::kV2Alone, own);
    }
  }
  const std::string above = base::parent_of(own);
  if (own != place.mount_point && (!is_systemds() || is_marked_delegated(above)) &&
      names(above + "/cgroup.subtree_control", controller) && refusal_of(above) == 0) {
    return found(Kind::kV2, above);
  }
  if (refused != 0) {
    out.fault = cannot_write(own, refused);
  } else if (is_alone_in(own)) {
    out.fault = "the group " + own + " is not marked as delegated, so its controllers are not ours to give on";
  } else {
    out.fault = "the group " + own + " has other processes, so it cannot give its controllers on";
  }
  return out;
}

bool is_real_time() {
  const int policy = ::sched_getscheduler(0);
  return policy == SCHED_FIFO || policy == SCHED_RR;
}

CgroupGround look_at_v1(const CgroupPlace& place, Controller controller) {
  CgroupGround out{.kind = Kind::kV1, .folder = place.folder, .fault = "", .version = 1};
  // A group's children by the child itself, as one thread: `tasks`, not `cgroup.procs`.
  const int refused = may_write(place.folder) ? 0 : errno;
  if (refused != 0) {
    out.kind = Kind::kNone;
    out.fault = cannot_write(place.folder, refused);
  } else if (controller == Controller::kCpu && is_real_time() &&
             ::access((place.folder + "/cpu.rt_runtime_us").c_str(), F_OK) == 0) {
    out.kind = Kind::kNone;
    out.fault = "the launcher runs with real-time priority, which a new group has none of";
  }
  return out;
}

CgroupGround look_at(const std::vector<CgroupPlace>& places, Controller controller, std::string_view delegated) {
  const std::string name = name_of(controller);
  CgroupGround out;
  out.fault = "no hierarchy here has the controller";
  for (const CgroupPlace& place : places) {
    const bool v2 = place.version == 2;
    if (v2 ? !names(place.folder + "/cgroup.controllers", name)
           : std::ranges::find(place.controllers, name) == place.controllers.end()) {
      continue;
    }
    // A controller is in one hierarchy only (cgroups(7)).
    return v2 ? look_at_v2(place, name, delegated) : look_at_v1(place, controller);
  }
  return out;
}

}  // namespace

const char* name_of(Controller controller) {
  switch (controller) {
    case Controller::kMemory:
      return "memory";
    case Controller::kCpu:
      return "cpu";
    case Controller::kPids:
      return "pids";
  }
  return "?";
}

CgroupGrounds find_cgroup_grounds(std::string_view delegated) {
  const std::vector<CgroupPlace> places =
      cgroup_places(read_or_empty("/proc/self/mountinfo"), read_or_empty("/proc/self/cgroup"));
  CgroupGrounds out;
  for (size_t i = 0; i < out.size(); ++i) out[i] = look_at(places, kControllers[i], delegated);
  return out;
}

}  // namespace belljar::linux
