#include "docker/weakness.h"

#include <string>

namespace belljar::testing {

using guest::Check;
using nlohmann::json;
using tiers::docker::Prepared;

Weaken patch(const char* text) {
  return [text](Prepared&, json& request) { request.merge_patch(json::parse(text)); };
}

Weaken without_step(uint32_t step, const char* text) {
  return [step, text](Prepared& prepared, json& request) {
    prepared.config.steps &= ~step;
    request.merge_patch(json::parse(text));
  };
}

std::vector<Weakness> weaknesses_of_the_boundary() {
  return {
      {Check::kFirstProcess, "getpid", patch(R"({"HostConfig":{"PidMode":"host"}})")},
      {Check::kNamespaces, "ipc", patch(R"({"HostConfig":{"IpcMode":"host"}})")},
      {Check::kNamespaces, "cgroup", patch(R"({"HostConfig":{"CgroupnsMode":"host"}})")},
      {Check::kNamespaces, "uts", patch(R"({"Hostname":null,"HostConfig":{"UTSMode":"host"}})")},
      {Check::kIdentity, "gid",
       [](Prepared& prepared, json& request) { request["User"] = std::to_string(prepared.profile.uid) + ":77"; }},
      {Check::kGroups, "supplementary", patch(R"({"HostConfig":{"GroupAdd":["7"]}})")},
      {Check::kCapabilities, "CapBnd", without_step(guest::kStepCapabilities, R"({"HostConfig":{"CapDrop":[]}})")},
      {Check::kCapabilities, "CapBnd",
       without_step(guest::kStepCapabilities, R"({"HostConfig":{"CapAdd":["NET_ADMIN"]}})")},
      {Check::kNoNewPrivileges, "NoNewPrivs", patch(R"({"HostConfig":{"SecurityOpt":[]}})")},
      {Check::kSeccomp, "Seccomp",
       patch(R"({"HostConfig":{"SecurityOpt":["no-new-privileges","seccomp=unconfined"]}})")},
      {Check::kNamespaceLimit, "/proc/sys", patch(R"({"HostConfig":{"ReadonlyPaths":[]}})")},
      {Check::kMounts, "'/'", patch(R"({"HostConfig":{"ReadonlyRootfs":false}})")},
      {Check::kMounts, "/more", patch(R"({"HostConfig":{"Binds":["/tmp:/more"]}})")},
      {Check::kMounts, "docker.sock", patch(R"({"HostConfig":{"Binds":["/tmp:/var/run/docker.sock"]}})")},
      {Check::kScratch, "bytes of /dev/shm", patch(R"({"HostConfig":{"ShmSize":2097152}})")},
      {Check::kHostname, "hostname", patch(R"({"Hostname":"other"})")},
      {Check::kInterfaces, "eth0", patch(R"({"HostConfig":{"NetworkMode":"bridge"}})")},
      {Check::kLandlock, "create a file", without_step(guest::kStepLandlock)},
      {Check::kLimits, "RLIMIT_NOFILE",
       without_step(guest::kStepLimits, R"({"HostConfig":{"Ulimits":[{"Name":"nofile","Soft":99,"Hard":99},)"
                                        R"({"Name":"core","Soft":1,"Hard":1}]}})")},
  };
}

}  // namespace belljar::testing
