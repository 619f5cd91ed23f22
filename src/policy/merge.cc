#include "policy/merge.h"

#include <algorithm>
#include <utility>

#include "policy/consistent.h"
#include "policy/hook_url.h"
#include "policy/host_rule.h"
#include "policy/parse.h"
#include "policy/preset.h"
#include "policy/show.h"
#include "policy/target.h"
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

// A later layer's words about the same hosts and ports replace the earlier ones, options and all.
void extend_hosts(std::vector<HostRule>& to, const std::vector<HostRule>& from) {
  std::erase_if(to, [&](const HostRule& old) {
    const auto same_target = [&](const HostRule& rule) { return rule.same_target(old); };
    return std::any_of(from.begin(), from.end(), same_target) && std::find(from.begin(), from.end(), old) == from.end();
  });
  for (const HostRule& rule : from) {
    if (std::find(to.begin(), to.end(), rule) == to.end()) to.push_back(rule);
  }
}

void fold(PolicyLayer& total, const PolicyLayer& next) {
  if (next.whole_isolation) {
    total.docker_image.reset();
    total.allow_hosts.clear();
    total.host_ports.clear();
    total.expose.clear();
    total.nested.reset();
  }
  total.files.insert(total.files.end(), next.files.begin(), next.files.end());
  take(total.mode, next.mode);
  take(total.network, next.network);
  take(total.docker_image, next.docker_image);
  take(total.transparent, next.transparent);
  extend_hosts(total.allow_hosts, next.allow_hosts);
  extend_hosts(total.deny_hosts, next.deny_hosts);
  extend_hosts(total.host_ports, next.host_ports);
  for (const auto& said : next.expose) {
    const bool known = std::ranges::any_of(total.expose, [&](const auto& each) { return each.value == said.value; });
    if (!known) total.expose.push_back(said);
  }
  take(total.nested, next.nested);
  take(total.ask, next.ask);
  take(total.ask_seconds, next.ask_seconds);
  take(total.upstream_proxy, next.upstream_proxy);
  withdraw(total.read, next.write);
  withdraw(total.write, next.read);
  extend(total.read, next.read);
  extend(total.write, next.write);
  extend(total.hide, next.hide);
  extend(total.approve, next.approve);
  take(total.home, next.home);
  take(total.toolchains, next.toolchains);
  take(total.allow_home, next.allow_home);
  take(total.git, next.git);
  for (const auto& [name, said] : next.limits) total.limits[name] = said;
  for (const auto& said : next.env_allow) total.env_set.erase(said.value);
  std::erase_if(total.env_allow, [&](const auto& entry) { return next.env_set.contains(entry.value); });
  extend(total.env_allow, next.env_allow);
  for (const auto& [name, said] : next.env_set) total.env_set[name] = said;
  take(total.clipboard, next.clipboard);
  take(total.audit_file, next.audit_file);
  take(total.audit_chain, next.audit_chain);
  take(total.audit_required, next.audit_required);
  take(total.hook_url, next.hook_url);
  // One token: the last layer that names where it comes from.
  if (next.hook_token_env) total.hook_token_file.reset();
  if (next.hook_token_file) total.hook_token_env.reset();
  take(total.hook_token_env, next.hook_token_env);
  take(total.hook_token_file, next.hook_token_file);
  take(total.target, next.target);
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
  policy.read_from = total.files;
  resolve(total.mode, "isolation.mode", policy.isolation.mode, policy);
  resolve(total.network, "isolation.network", policy.isolation.network, policy);
  resolve(total.transparent, "isolation.transparent", policy.isolation.transparent, policy);
  resolve(total.docker_image, "isolation.docker_image", policy.isolation.docker_image, policy);
  policy.isolation.allow_hosts = total.allow_hosts;
  policy.isolation.deny_hosts = total.deny_hosts;
  policy.isolation.host_ports = total.host_ports;
  for (const auto& [port, source] : total.expose) {
    policy.isolation.expose.push_back(port);
    policy.sources["isolation.expose " + to_text(port)] = source;
  }
  resolve(total.nested, "isolation.nested", policy.isolation.nested, policy);
  resolve(total.ask, "isolation.ask", policy.isolation.ask, policy);
  resolve(total.ask_seconds, "isolation.ask_timeout", policy.isolation.ask_seconds, policy);
  resolve(total.upstream_proxy, "isolation.upstream_proxy", policy.isolation.upstream_proxy, policy);
  resolve(total.read, "files.read", policy.files.read, policy);
  resolve(total.write, "files.write", policy.files.write, policy);
  resolve(total.hide, "files.hide", policy.files.hide, policy);
  resolve(total.approve, "files.approve", policy.files.approve, policy);
  resolve(total.home, "files.home", policy.files.home, policy);
  resolve(total.toolchains, "files.toolchains", policy.files.toolchains, policy);
  resolve(total.allow_home, "files.allow_home", policy.files.allow_home, policy);
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
  resolve(total.clipboard, "terminal.clipboard", policy.terminal.clipboard, policy);
  resolve(total.audit_file, "audit.file", policy.audit.file, policy);
  resolve(total.audit_chain, "audit.chain", policy.audit.chain, policy);
  resolve(total.audit_required, "audit.required", policy.audit.required, policy);
  resolve(total.hook_url, "hook.url", policy.hook.url, policy);
  resolve(total.hook_token_env, "hook.token_env", policy.hook.token_env, policy);
  resolve(total.hook_token_file, "hook.token_file", policy.hook.token_file, policy);
  resolve(total.target, "target", policy.target, policy);
  if (policy.target == kLocalTarget) policy.target.clear();
  resolve(total.agent, "agent", policy.agent, policy);
  if (policy.files.home == Home::kEmpty) {
    Agent& agent = policy.agent;
    for (auto* list : {&agent.config_dirs, &agent.config_files, &agent.obeyed, &agent.history, &agent.state_keys}) {
      list->clear();
    }
    agent.state_file.clear();
  }
  if (policy.isolation.mode == Mode::kNone || policy.isolation.nested) keep_inner_sandbox(policy.agent);
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
  layer.transparent = {Transparent::kAuto, source};
  layer.git = {GitAccess::kRead, source};
  layer.home = {Home::kAgent, source};
  layer.toolchains = {Toolchains::kAuto, source};
  layer.clipboard = {Clipboard::kDeny, source};
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

base::Result<std::string> said_json(std::span<const PolicyLayer> layers) {
  PolicyLayer total;
  for (const PolicyLayer& layer : layers) fold(total, layer);
  BELLJAR_TRY(check_consistent(total));
  const Policy said = resolve(total);
  std::string text = show_said_json(said);
  // What was not written down would be lost without a word.
  BELLJAR_ASSIGN(const PolicyLayer back, parse_policy(text, "said.json"));
  if (!(resolve(back) == said)) {
    return base::refuse("write down the policy", "", "it does not read back as the same, refusing",
                        "this is a defect of belljar: please report it");
  }
  return text;
}

Policy built_in(std::string_view agent) {
  PolicyLayer total = built_in_layer();
  fold(total, agent_layer(agent, kBuiltIn));
  return resolve(total);
}

std::vector<HostRule> session_rules(const Policy& policy) {
  if (policy.isolation.network != Network::kDeny) return {};
  std::vector<HostRule> out = policy.isolation.deny_hosts;
  std::vector<HostRule> allowed = reachable_hosts(policy);
  out.insert(out.end(), allowed.begin(), allowed.end());
  out.insert(out.end(), policy.isolation.host_ports.begin(), policy.isolation.host_ports.end());
  const auto source = policy.sources.find("hook.url");
  std::vector<HostRule> hooks = hook_rules(policy.hook, source == policy.sources.end() ? "" : source->second);
  out.insert(out.end(), hooks.begin(), hooks.end());
  give_ids(out);
  return out;
}

std::vector<HostRule> reachable_hosts(const Policy& policy) {
  std::vector<HostRule> out;
  if (policy.isolation.network != Network::kDeny) return out;
  const auto add = [&](const std::vector<std::string>& texts, const std::string& source) {
    for (const std::string& text : texts) {
      if (auto rule = parse_host_rule(text, source)) extend_hosts(out, {*rule});
    }
  };
  add(policy.agent.hosts, "preset " + policy.agent.name);
  add(policy.agent.registries, "preset " + policy.agent.name);
  extend_hosts(out, policy.isolation.allow_hosts);
  return out;
}

}  // namespace belljar::policy
