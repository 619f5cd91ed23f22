#include "policy/merge.h"

#include <algorithm>
#include <utility>

#include "policy/consistent.h"
#include "policy/host_rule.h"
#include "policy/preset.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

using Entries = std::vector<Said<std::string>>;

template <class T>
void take(std::optional<T>& to, const std::optional<T>& from) {
  if (from) to = from;
}

bool holds(const Entries& entries, const std::string& value) {
  return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.value == value; });
}

void extend(Entries& to, const Entries& from) {
  for (const auto& entry : from) {
    if (!holds(to, entry.value)) to.push_back(entry);
  }
}

// What `later` says takes its values away from `list`.
void withdraw(Entries& list, const Entries& later) {
  std::erase_if(list, [&](const auto& entry) { return holds(later, entry.value); });
}

void extend_hosts(std::vector<HostRule>& to, const std::vector<HostRule>& from) {
  for (const HostRule& rule : from) {
    if (std::find(to.begin(), to.end(), rule) == to.end()) to.push_back(rule);
  }
}

void fold(PolicyLayer& total, const PolicyLayer& next) {
  take(total.mode, next.mode);
  take(total.network, next.network);
  take(total.docker_image, next.docker_image);
  extend_hosts(total.allow_hosts, next.allow_hosts);
  withdraw(total.read, next.write);
  withdraw(total.write, next.read);
  extend(total.read, next.read);
  extend(total.write, next.write);
  extend(total.hide, next.hide);
  take(total.home, next.home);
  take(total.git, next.git);
  for (const auto& [name, said] : next.limits) total.limits[name] = said;
  for (const auto& said : next.env_allow) total.env_set.erase(said.value);
  std::erase_if(total.env_allow, [&](const auto& entry) { return next.env_set.contains(entry.value); });
  extend(total.env_allow, next.env_allow);
  for (const auto& [name, said] : next.env_set) total.env_set[name] = said;
  take(total.agent, next.agent);
}

template <class T>
void resolve(const std::optional<Said<T>>& said, std::string_view key, T& value, Policy& policy) {
  if (!said) return;
  value = said->value;
  policy.sources[std::string(key)] = said->source;
}

void resolve(const Entries& entries, const std::string& key, std::vector<std::string>& list, Policy& policy) {
  for (const auto& [value, source] : entries) {
    list.push_back(value);
    policy.sources[key + " " + value] = source;
  }
}

Policy resolve(const PolicyLayer& total) {
  Policy policy;
  resolve(total.mode, "isolation.mode", policy.isolation.mode, policy);
  resolve(total.network, "isolation.network", policy.isolation.network, policy);
  resolve(total.docker_image, "isolation.docker_image", policy.isolation.docker_image, policy);
  policy.isolation.allow_hosts = total.allow_hosts;
  for (const HostRule& rule : total.allow_hosts) {
    policy.sources["isolation.allow_hosts " + to_text(rule)] = rule.source;
  }
  resolve(total.read, "files.read", policy.files.read, policy);
  resolve(total.write, "files.write", policy.files.write, policy);
  resolve(total.hide, "files.hide", policy.files.hide, policy);
  resolve(total.home, "files.home", policy.files.home, policy);
  resolve(total.git, "git", policy.git, policy);
  for (const LimitSpec& spec : limit_specs()) {
    const auto said = total.limits.find(std::string(spec.name));
    if (said == total.limits.end()) continue;
    policy.limits.*spec.field = said->second.value;
    policy.sources["limits." + said->first] = said->second.source;
  }
  resolve(total.env_allow, "env.allow", policy.env.allow, policy);
  for (const auto& [name, said] : total.env_set) {
    policy.env.set[name] = said.value;
    policy.sources["env.set." + name] = said.source;
  }
  resolve(total.agent, "agent", policy.agent, policy);
  if (policy.files.home == Home::kEmpty) {
    policy.agent.config_dirs.clear();
    policy.agent.config_files.clear();
  }
  if (policy.isolation.mode == Mode::kNone) keep_inner_sandbox(policy.agent);
  return policy;
}

constexpr std::string_view kBuiltIn = "built-in policy";

}  // namespace

base::Result<Policy> merge(std::span<const PolicyLayer> layers) {
  PolicyLayer total;
  for (const PolicyLayer& layer : layers) fold(total, layer);
  BELLJAR_TRY(check_consistent(total));
  return resolve(total);
}

PolicyLayer built_in_layer() {
  PolicyLayer layer;
  const std::string source(kBuiltIn);
  layer.mode = {Mode::kJail, source};
  layer.network = {Network::kDeny, source};
  layer.git = {GitAccess::kRead, source};
  layer.home = {Home::kAgent, source};
  return layer;
}

PolicyLayer agent_layer(std::string_view agent, std::string_view source) {
  PolicyLayer layer;
  if (agent.empty()) return layer;
  Agent value;
  if (const Agent* known = find_agent(agent)) {
    value = *known;
  } else {
    value.name = agent;
  }
  layer.agent = {std::move(value), std::string(source)};
  return layer;
}

Policy built_in(std::string_view agent) {
  PolicyLayer total = built_in_layer();
  fold(total, agent_layer(agent, kBuiltIn));
  return resolve(total);
}

std::vector<HostRule> reachable_hosts(const Policy& policy) {
  std::vector<HostRule> out;
  if (policy.isolation.network != Network::kDeny) return out;
  const auto add = [&](const std::vector<std::string>& texts, const std::string& source) {
    for (const std::string& text : texts) {
      if (auto rule = parse_host_rule(text, source)) extend_hosts(out, {*rule});
    }
  };
  add(policy.agent.hosts, "agent " + policy.agent.name);
  add(policy.agent.registries, "registries of agent " + policy.agent.name);
  extend_hosts(out, policy.isolation.allow_hosts);
  return out;
}

}  // namespace belljar::policy
