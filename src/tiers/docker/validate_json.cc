#include "tiers/docker/validate_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "tiers/docker/create_json.h"
#include "tiers/docker/json_depth.h"

namespace belljar::tiers::docker {
namespace {

using Json = nlohmann::json;
using Pointer = Json::json_pointer;

constexpr std::string_view kOperation = "check the container";
// What Docker Desktop puts before the path of its host.
constexpr std::string_view kHostMount = "/host_mnt/";

// What every engine since 20.10 hides from a container (moby, oci/defaults.go); later ones hide more.
constexpr std::array kMasked = {"/proc/asound",     "/proc/acpi",          "/proc/kcore",
                                "/proc/keys",       "/proc/latency_stats", "/proc/scsi",
                                "/proc/timer_list", "/proc/sched_debug",   "/sys/firmware"};
constexpr std::array kReadonly = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"};

bool is_empty(const Json& value) {
  if (value.is_null() || ((value.is_array() || value.is_object()) && value.empty())) return true;
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  if (value.is_boolean()) return !value.get<bool>();
  return value.is_number() && value == 0;
}

Json sorted(Json list) {
  if (list.is_array()) std::sort(list.begin(), list.end());
  return list;
}

std::string host_path(std::string path) {
  return path.starts_with(kHostMount) ? path.substr(kHostMount.size() - 1) : path;
}

// How a found value is made comparable with what is expected.
using Normal = Json (*)(const Json& found);

// Null, zero, false, nothing in it: all the same.
Json empty_or_itself(const Json& found) {
  return is_empty(found) ? Json() : found;
}
Json itself(const Json& found) {
  return found;
}
Json as_set(const Json& found) {
  return is_empty(found) ? Json::array() : sorted(found);
}

// Engines since 25 say of a bind without what lies below it, asked for in a version of the API before 1.44, that it is
// read-only without what lies below it. There is nothing below it.
void without_word_of_nothing(Json& mount) {
  const auto options = mount.find("BindOptions");
  if (options == mount.end() || !options->is_object()) return;
  const auto alone = options->find("NonRecursive");
  if (alone != options->end() && *alone == true) options->erase("ReadOnlyNonRecursive");
}

Json requested_mounts(const Json& found) {
  Json out = Json::array();
  if (!found.is_array()) return is_empty(found) ? out : found;
  for (Json one : found) {
    if (one.is_object() && one.contains("Source") && one["Source"].is_string()) {
      one["Source"] = host_path(one["Source"].get<std::string>());
    }
    // What is false, null or empty was not asked for.
    if (one.is_object()) {
      for (auto entry = one.begin(); entry != one.end();)
        entry = is_empty(*entry) ? one.erase(entry) : std::next(entry);
      without_word_of_nothing(one);
    }
    out.push_back(std::move(one));
  }
  return sorted(std::move(out));
}

Json tmpfs_options(const Json& found) {
  if (!found.is_object()) return is_empty(found) ? Json::object() : found;
  Json out = Json::object();
  for (const auto& [target, options] : found.items()) {
    Json list = Json::array();
    const std::string text = options.is_string() ? options.get<std::string>() : options.dump();
    for (const std::string_view option : base::split(text, ',')) list.push_back(option);
    out[target] = sorted(std::move(list));
  }
  return out;
}

Json ulimits(const Json& found) {
  Json out = Json::array();
  if (!found.is_array()) return is_empty(found) ? out : found;
  return sorted(found);
}

Json without_empty_members(const Json& found) {
  if (!found.is_object()) return empty_or_itself(found);
  Json out = Json::object();
  for (const auto& [key, value] : found.items()) {
    if (!is_empty(value)) out[key] = value;
  }
  return out;
}

// "no" is what the engine makes of an empty name, and means the same.
Json restart(const Json& found) {
  Json out = without_empty_members(found);
  if (const auto name = out.find("Name"); out.is_object() && name != out.end() && *name == "no") out.erase(name);
  return empty_or_itself(out);
}

// Newer engines answer "default" where older ones say nothing.
Json isolation(const Json& found) {
  return found == "default" ? Json() : empty_or_itself(found);
}

Json apparmor(const Json& found) {
  return found == "docker-default" ? Json() : empty_or_itself(found);
}

template <const auto& kList>
Json holds_all(const Json& found) {
  Json missing = Json::array();
  for (const char* path : kList) {
    if (!found.is_array() || std::ranges::find(found, Json(path)) == found.end()) missing.push_back(path);
  }
  // What is compared is what is missing; the message then names it.
  return missing.empty() ? Json() : Json{{"missing", missing}};
}

Json network_names(const Json& found) {
  Json out = Json::array();
  if (found.is_object()) {
    for (const auto& [name, value] : found.items()) out.push_back(name);
  }
  return out;
}

// On cgroup v2 the kernel has none, and the engine answers null.
Json swappiness(const Json& found) {
  return found.is_null() ? Json(0) : found;
}

using Expected = Json (*)(const Profile& profile);

Json nothing(const Profile&) {
  return {};
}

struct Rule {
  Field field;
  const char* path;
  Expected expected;
  Normal normal;
};

Json path_of(const Profile& profile) {
  return profile.entrypoint.empty() ? Json() : Json(profile.entrypoint.front());
}
Json arguments_of(const Profile& profile) {
  Json out = Json::array();
  for (size_t i = 1; i < profile.entrypoint.size(); ++i) out.push_back(profile.entrypoint[i]);
  for (const std::string& word : profile.command) out.push_back(word);
  return out;
}
Json image_of(const Profile& profile) {
  return profile.image_id;
}
Json name_of(const Profile& profile) {
  return "/" + profile.name;
}
Json created(const Profile&) {
  return "created";
}
Json linux_platform(const Profile&) {
  return "linux";
}
Json networks_of(const Profile& profile) {
  return {{network_name(profile.network), Json::object()}};
}
Json swappiness_of(const Profile&) {
  return 0;
}

template <auto kKey>
Json of_config(const Profile& profile) {
  const Json request = create_json(profile);
  const auto found = request.find(kKey());
  return found == request.end() ? Json() : *found;
}
template <auto kKey>
Json of_host(const Profile& profile) {
  const Json request = create_json(profile);
  const Json& host = request.at("HostConfig");
  const auto found = host.find(kKey());
  return found == host.end() ? Json() : *found;
}

#define BELLJAR_CONFIG(key) &of_config<[] { return key; }>
#define BELLJAR_HOST(key) &of_host<[] { return key; }>

// The order is that of Field.
constexpr std::array<Rule, static_cast<size_t>(Field::kCount)> kRules = {{
    {Field::kName, "/Name", &name_of, &itself},
    {Field::kImage, "/Image", &image_of, &itself},
    {Field::kPath, "/Path", &path_of, &itself},
    {Field::kArguments, "/Args", &arguments_of, &itself},
    {Field::kRunning, "/State/Status", &created, &itself},
    {Field::kAppArmor, "/AppArmorProfile", &nothing, &apparmor},
    {Field::kProcessLabel, "/ProcessLabel", &nothing, &empty_or_itself},
    {Field::kPlatform, "/Platform", &linux_platform, &itself},
    {Field::kResolvedMounts, "/Mounts", &resolved_mounts, &normal_resolved_mounts},
    {Field::kPorts, "/NetworkSettings/Ports", &nothing, &empty_or_itself},
    {Field::kNetworks, "/NetworkSettings/Networks", &networks_of, &network_names},
    {Field::kUser, "/Config/User", BELLJAR_CONFIG("User"), &itself},
    {Field::kEntrypoint, "/Config/Entrypoint", BELLJAR_CONFIG("Entrypoint"), &itself},
    {Field::kCommand, "/Config/Cmd", BELLJAR_CONFIG("Cmd"), &itself},
    {Field::kHostname, "/Config/Hostname", BELLJAR_CONFIG("Hostname"), &itself},
    {Field::kDomainname, "/Config/Domainname", &nothing, &empty_or_itself},
    {Field::kWorkingFolder, "/Config/WorkingDir", BELLJAR_CONFIG("WorkingDir"), &itself},
    {Field::kEnvironment, "/Config/Env", BELLJAR_CONFIG("Env"), &as_set},
    {Field::kLabels, "/Config/Labels", BELLJAR_CONFIG("Labels"), &itself},
    {Field::kTty, "/Config/Tty", &nothing, &empty_or_itself},
    {Field::kOpenStdin, "/Config/OpenStdin", &nothing, &empty_or_itself},
    {Field::kExposedPorts, "/Config/ExposedPorts", &nothing, &empty_or_itself},
    {Field::kVolumes, "/Config/Volumes", &nothing, &empty_or_itself},
    {Field::kHealthcheck, "/Config/Healthcheck", BELLJAR_CONFIG("Healthcheck"), &without_empty_members},
    {Field::kNetworkDisabled, "/Config/NetworkDisabled", &nothing, &empty_or_itself},
    {Field::kMacAddress, "/Config/MacAddress", &nothing, &empty_or_itself},
    {Field::kStopSignal, "/Config/StopSignal", BELLJAR_CONFIG("StopSignal"), &itself},
    {Field::kStopTimeout, "/Config/StopTimeout", &nothing, &empty_or_itself},
    {Field::kOnBuild, "/Config/OnBuild", &nothing, &empty_or_itself},
    {Field::kShell, "/Config/Shell", &nothing, &empty_or_itself},
    {Field::kOtherConfig, "/Config", &nothing, nullptr},
    {Field::kBinds, "/HostConfig/Binds", &nothing, &empty_or_itself},
    {Field::kMounts, "/HostConfig/Mounts", BELLJAR_HOST("Mounts"), &requested_mounts},
    {Field::kTmpfs, "/HostConfig/Tmpfs", BELLJAR_HOST("Tmpfs"), &tmpfs_options},
    {Field::kNetworkMode, "/HostConfig/NetworkMode", BELLJAR_HOST("NetworkMode"), &itself},
    {Field::kPortBindings, "/HostConfig/PortBindings", &nothing, &empty_or_itself},
    {Field::kPublishAllPorts, "/HostConfig/PublishAllPorts", &nothing, &empty_or_itself},
    {Field::kRestartPolicy, "/HostConfig/RestartPolicy", &nothing, &restart},
    {Field::kAutoRemove, "/HostConfig/AutoRemove", &nothing, &empty_or_itself},
    {Field::kVolumeDriver, "/HostConfig/VolumeDriver", &nothing, &empty_or_itself},
    {Field::kVolumesFrom, "/HostConfig/VolumesFrom", &nothing, &empty_or_itself},
    {Field::kCapAdd, "/HostConfig/CapAdd", &nothing, &empty_or_itself},
    {Field::kCapDrop, "/HostConfig/CapDrop", BELLJAR_HOST("CapDrop"), &as_set},
    {Field::kCgroupNamespace, "/HostConfig/CgroupnsMode", BELLJAR_HOST("CgroupnsMode"), &itself},
    {Field::kIpcMode, "/HostConfig/IpcMode", BELLJAR_HOST("IpcMode"), &itself},
    {Field::kPidMode, "/HostConfig/PidMode", &nothing, &empty_or_itself},
    {Field::kUtsMode, "/HostConfig/UTSMode", &nothing, &empty_or_itself},
    {Field::kUserNamespace, "/HostConfig/UsernsMode", &nothing, &empty_or_itself},
    {Field::kCgroup, "/HostConfig/Cgroup", &nothing, &empty_or_itself},
    {Field::kCgroupParent, "/HostConfig/CgroupParent", &nothing, &empty_or_itself},
    {Field::kDns, "/HostConfig/Dns", &nothing, &empty_or_itself},
    {Field::kDnsOptions, "/HostConfig/DnsOptions", &nothing, &empty_or_itself},
    {Field::kDnsSearch, "/HostConfig/DnsSearch", &nothing, &empty_or_itself},
    {Field::kExtraHosts, "/HostConfig/ExtraHosts", &nothing, &empty_or_itself},
    {Field::kGroupAdd, "/HostConfig/GroupAdd", &nothing, &empty_or_itself},
    {Field::kLinks, "/HostConfig/Links", &nothing, &empty_or_itself},
    {Field::kOomScore, "/HostConfig/OomScoreAdj", &nothing, &empty_or_itself},
    {Field::kOomKillDisable, "/HostConfig/OomKillDisable", &nothing, &empty_or_itself},
    {Field::kPrivileged, "/HostConfig/Privileged", &nothing, &empty_or_itself},
    {Field::kReadOnlyRoot, "/HostConfig/ReadonlyRootfs", BELLJAR_HOST("ReadonlyRootfs"), &itself},
    {Field::kSecurityOptions, "/HostConfig/SecurityOpt", BELLJAR_HOST("SecurityOpt"), &as_set},
    {Field::kShmSize, "/HostConfig/ShmSize", BELLJAR_HOST("ShmSize"), &itself},
    {Field::kSysctls, "/HostConfig/Sysctls", &nothing, &empty_or_itself},
    {Field::kStorageOptions, "/HostConfig/StorageOpt", &nothing, &empty_or_itself},
    {Field::kRuntime, "/HostConfig/Runtime", BELLJAR_HOST("Runtime"), &itself},
    {Field::kIsolation, "/HostConfig/Isolation", &nothing, &isolation},
    {Field::kInit, "/HostConfig/Init", &nothing, &empty_or_itself},
    {Field::kLog, "/HostConfig/LogConfig", BELLJAR_HOST("LogConfig"), &without_empty_members},
    {Field::kCpuShares, "/HostConfig/CpuShares", &nothing, &empty_or_itself},
    {Field::kNanoCpus, "/HostConfig/NanoCpus", BELLJAR_HOST("NanoCpus"), &itself},
    {Field::kCpuPeriod, "/HostConfig/CpuPeriod", &nothing, &empty_or_itself},
    {Field::kCpuQuota, "/HostConfig/CpuQuota", &nothing, &empty_or_itself},
    {Field::kCpuRealtimePeriod, "/HostConfig/CpuRealtimePeriod", &nothing, &empty_or_itself},
    {Field::kCpuRealtimeRuntime, "/HostConfig/CpuRealtimeRuntime", &nothing, &empty_or_itself},
    {Field::kCpusetCpus, "/HostConfig/CpusetCpus", &nothing, &empty_or_itself},
    {Field::kCpusetMems, "/HostConfig/CpusetMems", &nothing, &empty_or_itself},
    {Field::kBlkioWeight, "/HostConfig/BlkioWeight", &nothing, &empty_or_itself},
    {Field::kBlkioWeightDevice, "/HostConfig/BlkioWeightDevice", &nothing, &empty_or_itself},
    {Field::kBlkioReadBps, "/HostConfig/BlkioDeviceReadBps", &nothing, &empty_or_itself},
    {Field::kBlkioWriteBps, "/HostConfig/BlkioDeviceWriteBps", &nothing, &empty_or_itself},
    {Field::kBlkioReadIops, "/HostConfig/BlkioDeviceReadIOps", &nothing, &empty_or_itself},
    {Field::kBlkioWriteIops, "/HostConfig/BlkioDeviceWriteIOps", &nothing, &empty_or_itself},
    {Field::kDevices, "/HostConfig/Devices", &nothing, &empty_or_itself},
    {Field::kDeviceCgroupRules, "/HostConfig/DeviceCgroupRules", &nothing, &empty_or_itself},
    {Field::kDeviceRequests, "/HostConfig/DeviceRequests", &nothing, &empty_or_itself},
    {Field::kMemory, "/HostConfig/Memory", BELLJAR_HOST("Memory"), &itself},
    {Field::kMemoryReservation, "/HostConfig/MemoryReservation", &nothing, &empty_or_itself},
    {Field::kMemorySwap, "/HostConfig/MemorySwap", BELLJAR_HOST("MemorySwap"), &itself},
    {Field::kMemorySwappiness, "/HostConfig/MemorySwappiness", &swappiness_of, &swappiness},
    {Field::kKernelMemory, "/HostConfig/KernelMemory", &nothing, &empty_or_itself},
    {Field::kKernelMemoryTcp, "/HostConfig/KernelMemoryTCP", &nothing, &empty_or_itself},
    {Field::kPidsLimit, "/HostConfig/PidsLimit", BELLJAR_HOST("PidsLimit"), &itself},
    {Field::kUlimits, "/HostConfig/Ulimits", BELLJAR_HOST("Ulimits"), &ulimits},
    {Field::kMaskedPaths, "/HostConfig/MaskedPaths", &nothing, &holds_all<kMasked>},
    {Field::kReadonlyPaths, "/HostConfig/ReadonlyPaths", &nothing, &holds_all<kReadonly>},
    {Field::kOtherHostConfig, "/HostConfig", &nothing, nullptr},
}};

consteval bool is_in_order() {
  for (size_t i = 0; i < kRules.size(); ++i) {
    if (kRules[i].field != static_cast<Field>(i)) return false;
  }
  return true;
}
static_assert(is_in_order(), "every field is compared");

// Of the two sections, keys that say nothing of what a container may: what the client is attached to, its window.
constexpr std::array kHarmless = {"/Config/Image",          "/Config/AttachStdin", "/Config/AttachStdout",
                                  "/Config/AttachStderr",   "/Config/StdinOnce",   "/Config/ArgsEscaped",
                                  "/HostConfig/ConsoleSize"};

Json other_keys(const Json& section, const std::string& prefix) {
  Json out = Json::object();
  if (!section.is_object()) return section;
  for (const auto& [key, value] : section.items()) {
    const std::string path = prefix + "/" + key;
    const bool known = std::ranges::any_of(kRules, [&](const Rule& rule) { return path == rule.path; }) ||
                       std::ranges::find(kHarmless, path) != kHarmless.end();
    if (!known && !is_empty(value)) out[key] = value;
  }
  return empty_or_itself(out);
}

std::string shown(const Json& value) {
  constexpr size_t kMost = 300;
  std::string out = value.is_string() ? value.get<std::string>() : value.dump();
  if (out.size() > kMost) out = out.substr(0, kMost) + "…";
  return base::escape(out);
}

// Variables may be secrets: only their names are told.
Json names_of_difference(const Json& here, const Json& there) {
  Json out = Json::array();
  for (const Json& one : here) {
    if (!one.is_string() || std::ranges::count(there, one) == std::ranges::count(here, one)) continue;
    const std::string text = one.get<std::string>();
    out.push_back(text.substr(0, text.find('=')) + "=…");
  }
  return out;
}

// Nothing when the field is as it should be.
std::optional<Difference> compare(const Rule& rule, const Profile& profile, const Json& inspected) {
  const Pointer pointer(rule.path);
  const Json value = inspected.contains(pointer) ? inspected.at(pointer) : Json();
  Json found = rule.normal != nullptr ? rule.normal(value) : other_keys(value, rule.path);
  Json expected = rule.expected(profile);
  if (rule.normal != nullptr && !expected.is_null()) expected = rule.normal(expected);
  if (found == expected) return std::nullopt;
  if (rule.field == Field::kEnvironment) {
    Json more = names_of_difference(found, expected);
    expected = names_of_difference(expected, found);
    found = std::move(more);
  }
  return Difference{rule.field, shown(expected), shown(found)};
}

}  // namespace

std::string field_name(Field field) {
  std::string out = kRules[static_cast<size_t>(field)].path + 1;
  std::ranges::replace(out, '/', '.');
  return out;
}

std::string create_request(const Profile& profile) {
  return create_json(profile).dump();
}

base::Result<std::vector<Difference>> differences(const Profile& profile, std::string_view inspected) {
  const Json json = is_shallow(inspected) ? Json::parse(inspected, nullptr, false) : Json();
  if (!json.is_object()) return base::refuse(kOperation, profile.name, "the engine's answer is no JSON, refusing");
  std::vector<Difference> out;
  for (const Rule& rule : kRules) {
    if (auto difference = compare(rule, profile, json)) out.push_back(std::move(*difference));
  }
  return out;
}

base::Status validate(const Profile& profile, std::string_view inspected) {
  BELLJAR_ASSIGN(const std::vector<Difference> found, differences(profile, inspected));
  if (found.empty()) return {};
  std::string reason;
  for (const Difference& one : found) {
    if (!reason.empty()) reason += "; " + field_name(one.field) + ": ";
    reason += "expected " + one.expected + ", found " + one.found;
  }
  return base::refuse(kOperation, field_name(found.front().field), reason + ", refusing",
                      "the container engine did not make what it was asked for; nothing was started");
}

bool knows_builtin_seccomp(const EngineInfo& info) {
  uint64_t minor = 0;
  return info.api.starts_with("1.") && base::parse_uint(std::string_view(info.api).substr(2), minor) && minor >= 42;
}

base::Status check_engine(const EngineInfo& info) {
  constexpr std::string_view kEngine = "check the container engine";
  const auto builtin = [](const std::string& option) {
    return option == "name=seccomp,profile=default" || option == "name=seccomp,profile=builtin";
  };
  if (!knows_builtin_seccomp(info) && std::ranges::none_of(info.security_options, builtin)) {
    return base::refuse(
        kEngine, "SecurityOptions",
        "expected its builtin seccomp profile, found " + shown(Json(info.security_options)) + ", refusing",
        "take --seccomp-profile out of the engine's configuration");
  }
  if (std::ranges::find(info.runtimes, "runc") == info.runtimes.end()) {
    return base::refuse(kEngine, "Runtimes", "expected runc, found none of that name, refusing", "install runc");
  }
  if (!info.memory_limit || !info.pids_limit) {
    return base::refuse(kEngine, info.memory_limit ? "PidsLimit" : "MemoryLimit",
                        "its host's kernel cannot hold it, refusing", "see 'docker info'");
  }
  return {};
}

}  // namespace belljar::tiers::docker
