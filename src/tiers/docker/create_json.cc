#include "tiers/docker/create_json.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace belljar::tiers::docker {
namespace {

using Json = nlohmann::json;

// tmpfs(5). The engine adds options of its own that are not here (tmpfs mounts of runc are nosuid, nodev, noexec unless
// told otherwise), so all are named.
std::string tmpfs_text(const TmpfsMount& mount) {
  std::array<char, 16> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(mount.mode));
  return std::string("rw,nosuid,nodev,") + (mount.exec ? "exec" : "noexec") + ",size=" + std::to_string(mount.bytes) +
         ",nr_inodes=" + std::to_string(mount.files) + ",mode=" + mode.data() + ",uid=" + std::to_string(mount.uid) +
         ",gid=" + std::to_string(mount.gid);
}

Json bind_json(const BindMount& mount) {
  Json options{{"Propagation", "rprivate"}};
  // Only the top of a recursive bind would be read-only (mount(2), MS_BIND).
  if (!mount.writable) options["NonRecursive"] = true;
  return {{"Type", "bind"},
          {"Source", mount.source},
          {"Target", mount.target},
          {"ReadOnly", !mount.writable},
          {"BindOptions", std::move(options)}};
}

Json volume_json(const VolumeMount& mount) {
  return {{"Type", "volume"},
          {"Source", mount.name},
          {"Target", mount.target},
          {"ReadOnly", !mount.writable},
          {"VolumeOptions", {{"NoCopy", true}}}};
}

Json host_config(const Profile& profile) {
  Json mounts = Json::array();
  for (const VolumeMount& mount : profile.volumes) mounts.push_back(volume_json(mount));
  for (const BindMount& mount : profile.binds) mounts.push_back(bind_json(mount));
  Json tmpfs = Json::object();
  for (const TmpfsMount& mount : profile.tmpfs) tmpfs[mount.target] = tmpfs_text(mount);
  Json ulimits = Json::array();
  for (const Ulimit& one : profile.ulimits) {
    ulimits.push_back({{"Name", one.name}, {"Soft", one.soft}, {"Hard", one.hard}});
  }
  Json security = Json::array({"no-new-privileges"});
  if (profile.seccomp_by_name) security.push_back("seccomp=builtin");
  return {{"NetworkMode", network_name(profile.network)},
          {"ReadonlyRootfs", profile.read_only_root},
          {"CapDrop", Json::array({"ALL"})},
          {"SecurityOpt", std::move(security)},
          {"CgroupnsMode", "private"},
          {"IpcMode", "private"},
          {"Runtime", "runc"},
          {"LogConfig", {{"Type", "none"}}},
          {"Mounts", std::move(mounts)},
          {"Tmpfs", std::move(tmpfs)},
          {"Ulimits", std::move(ulimits)},
          {"Memory", profile.memory_bytes},
          {"MemorySwap", profile.memory_bytes},
          {"MemorySwappiness", 0},
          {"NanoCpus", profile.nano_cpus},
          {"PidsLimit", profile.pids},
          {"ShmSize", profile.shm_bytes}};
}

}  // namespace

const char* network_name(ContainerNetwork network) {
  return network == ContainerNetwork::kNone ? "none" : "bridge";
}

Json create_json(const Profile& profile) {
  return {{"Image", profile.image_id},
          {"Hostname", profile.hostname},
          {"User", std::to_string(profile.uid) + ":" + std::to_string(profile.gid)},
          {"Entrypoint", profile.entrypoint},
          {"Cmd", profile.command},
          {"WorkingDir", profile.working_folder},
          {"Env", profile.env},
          {"Labels", profile.labels},
          {"StopSignal", "SIGKILL"},
          {"Healthcheck", {{"Test", Json::array({"NONE"})}}},
          {"HostConfig", host_config(profile)}};
}

Json resolved_mounts(const Profile& profile) {
  Json out = Json::array();
  for (const BindMount& mount : profile.binds) {
    out.push_back({{"Type", "bind"},
                   {"Source", mount.source},
                   {"Destination", mount.target},
                   {"Mode", ""},
                   {"RW", mount.writable},
                   {"Propagation", "rprivate"}});
  }
  for (const VolumeMount& mount : profile.volumes) {
    out.push_back({{"Type", "volume"},
                   {"Name", mount.name},
                   {"Source", mount.source},
                   {"Destination", mount.target},
                   {"Driver", "local"},
                   {"Mode", ""},
                   {"RW", mount.writable},
                   {"Propagation", ""}});
  }
  return out;
}

Json normal_resolved_mounts(const Json& found) {
  constexpr std::string_view kHostMount = "/host_mnt/";
  if (!found.is_array()) return found.is_null() ? Json::array() : found;
  Json out = Json::array();
  for (Json one : found) {
    if (one.is_object() && one.contains("Source") && one["Source"].is_string()) {
      std::string source = one["Source"].get<std::string>();
      if (source.starts_with(kHostMount)) source.erase(0, kHostMount.size() - 1);
      one["Source"] = std::move(source);
    }
    // The label that an engine would give a volume's files, had the host SELinux; older engines say it of each.
    if (one.is_object() && one.contains("Mode") && one["Mode"] == "z" && one.contains("Type") &&
        one["Type"] == "volume")
      one["Mode"] = "";
    out.push_back(std::move(one));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace belljar::tiers::docker
