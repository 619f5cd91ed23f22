#include "policy/flags.h"

#include <algorithm>

#include "base/text.h"
#include "policy/consistent.h"
#include "policy/document.h"
#include "policy/hook_url.h"
#include "policy/host_rule.h"
#include "policy/merge.h"
#include "policy/preset.h"
#include "policy/target.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

std::unexpected<base::Error> refuse(std::string_view flag, std::string_view text, const Refusal& refusal) {
  return base::refuse(flag, text, refusal.reason, refusal.hint);
}

base::Status check_text(std::string_view flag, const std::string& text) {
  // Policies are printed and stored as text, so they hold nothing else.
  if (!base::is_utf8(text))
    return refuse(flag, text, {"is not valid UTF-8", "rename it, or name the folder that holds it"});
  return {};
}

template <class E, size_t n>
base::Status take_named(std::string_view flag, const std::optional<std::string>& text, const Named<E> (&names)[n],
                        std::optional<Said<E>>& out) {
  if (!text) return {};
  const Verdict<E> value = parse_named(*text, names);
  if (!value) return refuse(flag, *text, value.error());
  out = {*value, std::string(flag)};
  return {};
}

base::Status take_paths(std::string_view flag, const std::vector<std::string>& texts,
                        std::vector<Said<std::string>>& out,
                        Verdict<std::string> (*parse)(std::string_view) = parse_path) {
  for (const std::string& text : texts) {
    BELLJAR_TRY(check_text(flag, text));
    auto path = parse(text);
    if (!path) return refuse(flag, text, path.error());
    const bool known = std::any_of(out.begin(), out.end(), [&](const auto& said) { return said.value == *path; });
    if (!known) out.push_back({std::move(*path), std::string(flag)});
  }
  return {};
}

base::Status take_rules(std::string_view flag, const std::vector<std::string>& texts,
                        base::Result<HostRule> (*parse)(std::string_view, std::string_view),
                        std::vector<HostRule>& out) {
  for (const std::string& text : texts) {
    auto rule = parse(text, flag);
    if (!rule) {
      rule.error().operation = flag;
      return std::unexpected(std::move(rule).error());
    }
    if (std::find(out.begin(), out.end(), *rule) == out.end()) out.push_back(std::move(*rule));
  }
  return {};
}

base::Status take_exposed(const std::vector<std::string>& texts, PolicyLayer& layer) {
  for (const std::string& text : texts) {
    const auto port = parse_exposed_port(text);
    if (!port) return refuse("--expose", text, port.error());
    const bool known = std::ranges::any_of(layer.expose, [&](const auto& said) { return said.value == *port; });
    if (!known) layer.expose.push_back({*port, "--expose"});
  }
  return {};
}

base::Status take_text(std::string_view flag, const std::optional<std::string>& text,
                       Verdict<std::string> (*parse)(std::string_view), std::optional<Said<std::string>>& out) {
  if (!text) return {};
  BELLJAR_TRY(check_text(flag, *text));
  auto value = parse(*text);
  if (!value) return refuse(flag, *text, value.error());
  out = {std::move(*value), std::string(flag)};
  return {};
}

base::Status take_env(const std::vector<std::string>& texts, PolicyLayer& layer) {
  constexpr std::string_view kFlag = "--env";
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (auto good = parse_env_name(name); !good) return refuse(kFlag, name, good.error());
    const auto allowed = std::find_if(layer.env_allow.begin(), layer.env_allow.end(),
                                      [&](const auto& said) { return said.value == name; });
    if (equals == std::string::npos) {
      if (allowed == layer.env_allow.end()) layer.env_allow.push_back({name, std::string(kFlag)});
      continue;
    }
    const std::string value = text.substr(equals + 1);
    if (!base::is_utf8(value)) return refuse(kFlag, name, {"its value is not valid UTF-8", "encode it as text"});
    if (auto good = parse_env_value(value); !good) return refuse(kFlag, name, good.error());
    const auto [set, added] = layer.env_set.try_emplace(name, Said<std::string>{value, std::string(kFlag)});
    if (!added && set->second.value != value) {
      return refuse(kFlag, name, {"set to two values", "give it once"});
    }
  }
  return {};
}

base::Status take_limit(std::string_view flag, const std::optional<std::string>& text, std::string_view key,
                        PolicyLayer& layer) {
  if (!text) return {};
  const LimitSpec& spec = *find_limit(key);
  uint64_t number = 0;
  const auto value = base::parse_uint(*text, number) ? check_limit(spec, number) : parse_limit(spec, *text);
  if (!value) return refuse(flag, *text, value.error());
  layer.limits[std::string(key)] = {*value, std::string(flag)};
  return {};
}

}  // namespace

base::Result<PolicyLayer> flags_layer(const FlagOverrides& flags) {
  PolicyLayer layer;
  if (flags.agent) {
    const auto name = parse_agent_name(*flags.agent);
    if (!name) return refuse("--agent", *flags.agent, name.error());
    const std::string_view near = find_agent(*name) == nullptr ? base::nearest(*name, agent_names()) : "";
    if (!near.empty()) {
      return refuse("--agent", *name, {"no preset has that name", "did you mean '" + std::string(near) + "'?"});
    }
    layer = agent_layer(*name, "--agent");
  }
  BELLJAR_TRY(take_named("--mode", flags.mode, kModes, layer.mode));
  BELLJAR_TRY(take_text("--docker-image", flags.docker_image, parse_image, layer.docker_image));
  BELLJAR_TRY(take_named("--net", flags.net, kNetworks, layer.network));
  BELLJAR_TRY(take_named("--git", flags.git, kGitAccesses, layer.git));
  BELLJAR_TRY(take_named("--clipboard", flags.clipboard, kClipboards, layer.clipboard));
  if (flags.audit) {
    BELLJAR_TRY(check_text("--audit", *flags.audit));
    auto path = parse_path(*flags.audit);
    if (!path) return refuse("--audit", *flags.audit, path.error());
    layer.audit_file = {std::move(*path), "--audit"};
  }
  BELLJAR_TRY(take_rules("--allow-host", flags.allow_hosts, parse_host_rule, layer.allow_hosts));
  BELLJAR_TRY(take_rules("--deny-host", flags.deny_hosts, parse_deny_rule, layer.deny_hosts));
  BELLJAR_TRY(take_rules("--host-port", flags.host_ports, parse_host_port, layer.host_ports));
  BELLJAR_TRY(take_exposed(flags.expose, layer));
  if (flags.nested) layer.nested = {true, "--nested"};
  if (flags.ask) layer.ask = {true, "--ask"};
  if (flags.allow_home) layer.allow_home = {true, "--allow-home"};
  BELLJAR_TRY(take_paths("--read", flags.read, layer.read));
  BELLJAR_TRY(take_paths("--write", flags.write, layer.write));
  BELLJAR_TRY(take_paths("--hide", flags.hide, layer.hide));
  BELLJAR_TRY(take_paths("--approve", flags.approve, layer.approve, parse_pattern));
  BELLJAR_TRY(take_text("--hook-url", flags.hook_url, canonical_hook_url, layer.hook_url));
  BELLJAR_TRY(take_text("--hook-token-env", flags.hook_token_env, parse_env_name, layer.hook_token_env));
  BELLJAR_TRY(take_text("--hook-token-file", flags.hook_token_file, parse_path, layer.hook_token_file));
  BELLJAR_TRY(take_text("--target", flags.target, parse_target, layer.target));
  BELLJAR_TRY(take_env(flags.env, layer));
  BELLJAR_TRY(take_limit("--timeout", flags.timeout, "wall", layer));
  BELLJAR_TRY(take_limit("--memory", flags.memory, "memory", layer));
  BELLJAR_TRY(take_limit("--cpu", flags.cpu, "cpu", layer));
  BELLJAR_TRY(take_limit("--pids", flags.pids, "pids", layer));
  BELLJAR_TRY(check_consistent(layer));
  return layer;
}

}  // namespace belljar::policy
