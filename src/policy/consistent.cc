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

// What only a denied network can hold.
base::Status check_open_network(const PolicyLayer& layer) {
  if (!layer.network || layer.network->value != Network::kAllow) return {};
  const auto refused = [&](const std::string& what, const std::string& source, std::string_view else_what) {
    return contradiction(source, what, quoted("network", "allow"), layer.network->source,
                         "deny the network, or leave " + std::string(else_what));
  };
  const std::pair<std::string_view, const std::vector<HostRule>&> lists[] = {
      {"allow_hosts", layer.allow_hosts}, {"deny_hosts", layer.deny_hosts}, {"host_ports", layer.host_ports}};
  for (const auto& [key, rules] : lists) {
    if (rules.empty()) continue;
    const HostRule& rule = rules.front();
    const std::string text = rule.host_port ? std::to_string(rule.port.value_or(0)) : to_text(rule);
    return refused(quoted(key, text), rule.source, "the hosts out: nothing holds them back");
  }
  if (layer.ask && layer.ask->value) {
    return refused("ask = true", layer.ask->source, "the asking out: nothing waits for an answer");
  }
  if (const auto& file = layer.audit_file) {
    return refused(quoted("audit.file", file->value), file->source,
                   "the file out: there is no proxy that could write it");
  }
  for (const auto& [key, said] :
       {std::pair{"hook.token_file", &layer.hook_token_file}, std::pair{"hook.token_env", &layer.hook_token_env}}) {
    if (!*said) continue;
    return refused(quoted(key, (*said)->value), (*said)->source,
                   "the token out: nothing is relayed that it could go along with");
  }
  return {};
}

base::Status check_isolation(const PolicyLayer& layer) {
  const auto& [mode, network] = std::tie(layer.mode, layer.network);
  BELLJAR_TRY(check_open_network(layer));
  if (mode && mode->value == Mode::kNone && network && network->value == Network::kDeny) {
    return contradiction(mode->source, quoted("mode", "none"), quoted("network", "deny"), network->source,
                         "without a boundary nothing is denied: say network = \"allow\" (--net allow) as well");
  }
  if (layer.docker_image && mode && mode->value != Mode::kDocker) {
    return contradiction(layer.docker_image->source, "docker_image", quoted("mode", name_of_value(mode->value, kModes)),
                         mode->source, "only mode = \"docker\" has an image: leave it out");
  }
  std::map<uint16_t, const Said<ExposedPort>*> ports;
  for (const auto& said : layer.expose) {
    const auto [other, added] = ports.try_emplace(said.value.host, &said);
    if (added) continue;
    return contradiction(said.source, quoted("expose", to_text(said.value)),
                         quoted("expose", to_text(other->second->value)), other->second->source,
                         "one port of this host leads to one port of the guest");
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

base::Status check_hook(const PolicyLayer& layer) {
  if (!layer.hook_token_file) return {};
  const auto& [file, source] = *layer.hook_token_file;
  if (layer.hook_token_env) {
    return contradiction(source, quoted("hook.token_file", file), quoted("hook.token_env", layer.hook_token_env->value),
                         layer.hook_token_env->source,
                         "the token of a launch is made for it or comes from a variable, not both");
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
  BELLJAR_TRY(check_hook(layer));
  return check_env(layer);
}

}  // namespace belljar::policy
