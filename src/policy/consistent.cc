#include "policy/consistent.h"

#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "policy/host_rule.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

std::string quoted(std::string_view key, std::string_view value) {
  return std::string(key) + " = \"" + std::string(value) + "\"";
}

std::unexpected<base::Error> contradiction(const std::string& here, const std::string& what, const std::string& other,
                                           const std::string& there, const std::string& hint) {
  return base::refuse(here, "", what + " contradicts " + other + " (" + there + ")", hint);
}

base::Status check_isolation(const PolicyLayer& layer) {
  const auto& [mode, network] = std::tie(layer.mode, layer.network);
  if (network && network->value == Network::kAllow && !layer.allow_hosts.empty()) {
    const HostRule& rule = layer.allow_hosts.front();
    return contradiction(rule.source, quoted("allow_hosts", to_text(rule)), quoted("network", "allow"), network->source,
                         "deny the network, or leave the hosts out: nothing holds them back");
  }
  if (mode && mode->value == Mode::kNone && network && network->value == Network::kDeny) {
    return contradiction(mode->source, quoted("mode", "none"), quoted("network", "deny"), network->source,
                         "without a boundary nothing is denied: say network = \"allow\" (--net allow) as well");
  }
  if (layer.docker_image && mode && mode->value != Mode::kDocker) {
    return contradiction(layer.docker_image->source, "docker_image", quoted("mode", name_of_value(mode->value, kModes)),
                         mode->source, "only mode = \"docker\" has an image: leave it out");
  }
  return {};
}

base::Status check_files(const PolicyLayer& layer) {
  struct List {
    std::string_view name;
    const std::vector<Said<std::string>>& entries;
  };
  const List lists[] = {{"read", layer.read}, {"write", layer.write}, {"hide", layer.hide}};
  std::map<std::string, std::pair<std::string_view, std::string>> seen;
  for (const auto& [name, entries] : lists) {
    for (const auto& [path, source] : entries) {
      const auto [other, added] = seen.try_emplace(path, name, source);
      if (added) continue;
      return contradiction(source, quoted(name, path), "the same path under '" + std::string(other->second.first) + "'",
                           other->second.second, "write includes read: name a path in one list");
    }
  }
  return {};
}

base::Status check_env(const PolicyLayer& layer) {
  for (const auto& [name, source] : layer.env_allow) {
    const auto set = layer.env_set.find(name);
    if (set == layer.env_set.end()) continue;
    return contradiction(source, quoted("env.allow", name), "env.set." + name, set->second.source,
                         "pass the launcher's value or set one, not both");
  }
  return {};
}

}  // namespace

base::Status check_consistent(const PolicyLayer& layer) {
  BELLJAR_TRY(check_isolation(layer));
  BELLJAR_TRY(check_files(layer));
  return check_env(layer);
}

}  // namespace belljar::policy
