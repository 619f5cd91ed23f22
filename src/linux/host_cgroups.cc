#include "linux/host_cgroups.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/path.h"
#include "base/text.h"
#include "linux/cgroup_ground.h"

namespace belljar::linux {
namespace {

// mountinfo writes space, tab, newline and backslash as three octal digits (proc(5)).
std::string unescape_octal(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped =
        text[i] == '\\' && i + 3 < text.size() &&
        std::all_of(text.begin() + static_cast<ptrdiff_t>(i) + 1, text.begin() + static_cast<ptrdiff_t>(i) + 4,
                    [](char c) { return c >= '0' && c <= '7'; });
    if (!escaped) {
      out += text[i];
      continue;
    }
    out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return out;
}

std::vector<std::string> split_words(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (const std::string_view word : base::split(text, separator)) {
    if (!word.empty()) out.emplace_back(word);
  }
  return out;
}

// The group's path in the hierarchy that holds all of `controllers`, from lines `ID:CONTROLLERS:PATH`. Controllers are
// empty on the line of v2 (cgroups(7)).
std::string own_group(std::string_view self_cgroup, const std::vector<std::string>& controllers) {
  for (const std::string_view line : base::split(self_cgroup, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const auto listed = split_words(line.substr(first + 1, second - first - 1), ',');
    const bool fits = controllers.empty() ? listed.empty() : std::ranges::find(listed, controllers[0]) != listed.end();
    if (fits) return std::string(line.substr(second + 1));
  }
  return {};
}

// `group` is seen from the root of the cgroup namespace, the mount shows the tree from `root` on.
std::string folder_of(const std::string& mount_point, const std::string& root, const std::string& group) {
  if (group.empty()) return {};
  if (root == "/") return group == "/" ? mount_point : mount_point + group;
  if (!base::is_within(group, root)) return mount_point;
  return mount_point + group.substr(root.size());
}

// Makes a group below `folder` and removes it. 0 or an errno.
int make_group(const std::string& folder) {
  const std::string trial = folder + "/belljar-trial-" + std::to_string(getpid());
  if (mkdir(trial.c_str(), 0700) != 0) return errno;
  return rmdir(trial.c_str()) == 0 ? 0 : errno;
}

}  // namespace

std::vector<CgroupPlace> cgroup_places(std::string_view mountinfo, std::string_view self_cgroup) {
  std::vector<CgroupPlace> places;
  for (const std::string_view line : base::split(mountinfo, '\n')) {
    // ID PARENT DEVICE ROOT POINT OPTIONS [TAG…] - TYPE SOURCE SUPEROPTIONS (proc_pid_mountinfo(5))
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos || !line.substr(dash + 3).starts_with("cgroup")) continue;
    const auto before = split_words(line.substr(0, dash), ' ');
    const auto after = split_words(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3 || (after[0] != "cgroup" && after[0] != "cgroup2")) continue;
    CgroupPlace place;
    place.version = after[0] == "cgroup2" ? 2 : 1;
    if (place.version == 1) {
      place.controllers = split_words(after[2], ',');
      std::erase_if(place.controllers, [](const std::string& word) {
        return word == "rw" || word == "ro" || word.find('=') != std::string::npos;
      });
      if (place.controllers.empty()) continue;  // a named hierarchy without controllers (systemd's)
    }
    place.folder =
        folder_of(unescape_octal(before[4]), unescape_octal(before[3]), own_group(self_cgroup, place.controllers));
    place.mount_point = unescape_octal(before[4]);
    if (!place.folder.empty()) places.push_back(std::move(place));
  }
  return places;
}

std::vector<CgroupController> look_at_cgroups() {
  const CgroupGrounds grounds = find_cgroup_grounds();
  std::vector<CgroupController> out;
  for (size_t i = 0; i < grounds.size(); ++i) {
    const CgroupGround& ground = grounds[i];
    CgroupController controller;
    controller.name = name_of(kControllers[i]);
    controller.version = ground.version;
    controller.folder = ground.folder;
    controller.fault = ground.fault;
    if (ground.usable() && ground.kind != CgroupGround::Kind::kSystemd) controller.error = make_group(ground.folder);
    out.push_back(std::move(controller));
  }
  return out;
}

}  // namespace belljar::linux
