#include "plan/special_files.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/path.h"

namespace belljar::plan {
namespace {

// Each is a mount of its own.
constexpr size_t kMostHidden = 2000;

constexpr std::array<std::string_view, 14> kEngineNames = {
    "docker.sock",    "podman.sock",        "containerd.sock",  "containerd.sock.ttrpc", "buildkitd.sock",
    "crio.sock",      "dockershim.sock",    "cri-dockerd.sock", "docker-raw.sock",       "libvirt-sock",
    "virtqemud-sock", "firecracker.socket", "io.podman",        "podman-machine.sock"};

constexpr std::array kEngineVariables = {"DOCKER_HOST", "CONTAINER_HOST", "BUILDKIT_HOST", "CONTAINERD_ADDRESS"};

std::vector<std::string> named_by_policy(const Draft& draft) {
  std::vector<std::string> out;
  for (const auto* list : {&draft.policy.files.read, &draft.policy.files.write}) {
    for (const std::string& text : *list) {
      const auto path = expand_path(text, draft.facts.home, draft.facts.work_folder);
      if (path) out.push_back(draft.fact(*path).real);
    }
  }
  return out;
}

}  // namespace

bool is_engine_socket(std::string_view path, const std::map<std::string, std::string, std::less<>>& environment) {
  if (std::ranges::find(kEngineNames, base::name_of(path)) != kEngineNames.end()) return true;
  if (path.ends_with("/lxd/unix.socket") || path.ends_with("/incus/unix.socket") ||
      path.ends_with("/systemd/private")) {
    return true;
  }
  return std::ranges::any_of(kEngineVariables, [&](const char* name) {
    const auto found = environment.find(name);
    if (found == environment.end()) return false;
    std::string_view address = found->second;
    if (address.starts_with("unix://")) address.remove_prefix(7);
    return base::normal_path(address) == path;
  });
}

base::Status add_special_files(Draft& draft) {
  const std::vector<std::string> named = named_by_policy(draft);
  for (const std::string& path : named) {
    const auto fact = std::ranges::find_if(draft.facts.paths, [&](const auto& entry) {
      return entry.second.real == path && is_special(entry.second.kind);
    });
    if (fact == draft.facts.paths.end()) continue;
    draft.weakenings.push_back("'" + path + "' is a " + (fact->second.kind == FileKind::kSocket ? "socket" : "FIFO") +
                               " of the host: what listens there takes what the agent says");
  }
  size_t hidden = 0;
  for (const SpecialFile& file : draft.facts.special_files) {
    if (!draft.table.shows(file.path) || draft.table.at(file.path) != nullptr) continue;
    if (std::ranges::find(named, file.path) != named.end()) continue;
    if (++hidden > kMostHidden) {
      return base::refuse("hide the sockets and FIFOs in", base::parent_of(file.path),
                          "there are more than " + std::to_string(kMostHidden) + ", refusing",
                          "remove them (find . -type p -o -type s), or start belljar in a smaller folder");
    }
    draft.table.add({.kind = MountKind::kMask,
                     .target = file.path,
                     .optional = true,
                     .reason = file.socket ? "a socket of the host" : "a FIFO of the host"});
  }
  return {};
}

}  // namespace belljar::plan
