#include "policy/flags.h"

#include <algorithm>

#include "base/text.h"
#include "policy/consistent.h"
#include "policy/document.h"
#include "policy/host_rule.h"
#include "policy/merge.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

std::unexpected<base::Error> refuse(std::string_view flag, std::string_view text, const Refusal& refusal) {
  return base::refuse(flag, text, refusal.reason, refusal.hint);
}

base::Status check_text(std::string_view flag, const std::string& text) {
  // Policies are printed and stored as text, so they hold nothing else.
  if (!is_utf8(text)) return refuse(flag, text, {"is not valid UTF-8", "rename it, or name the folder that holds it"});
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
                        std::vector<Said<std::string>>& out) {
  for (const std::string& text : texts) {
    BELLJAR_TRY(check_text(flag, text));
    auto path = parse_path(text);
    if (!path) return refuse(flag, text, path.error());
    const bool known = std::any_of(out.begin(), out.end(), [&](const auto& said) { return said.value == *path; });
    if (!known) out.push_back({std::move(*path), std::string(flag)});
  }
  return {};
}

base::Status take_hosts(const std::vector<std::string>& texts, std::vector<HostRule>& out) {
  constexpr std::string_view kFlag = "--allow-host";
  for (const std::string& text : texts) {
    auto rule = parse_host_rule(text, kFlag);
    if (!rule) {
      rule.error().operation = kFlag;
      return std::unexpected(std::move(rule).error());
    }
    if (std::find(out.begin(), out.end(), *rule) == out.end()) out.push_back(std::move(*rule));
  }
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
    if (!is_utf8(value)) return refuse(kFlag, name, {"its value is not valid UTF-8", "encode it as text"});
    if (auto good = parse_env_value(value); !good) return refuse(kFlag, name, good.error());
    const auto [set, added] = layer.env_set.try_emplace(name, Said<std::string>{value, std::string(kFlag)});
    if (!added && set->second.value != value) {
      return refuse(kFlag, name, {"set to two values", "give it once"});
    }
  }
  return {};
}

base::Status take_timeout(const std::string& text, PolicyLayer& layer) {
  constexpr std::string_view kFlag = "--timeout";
  const LimitSpec& wall = *find_limit("wall");
  uint64_t seconds = 0;
  const auto value = base::parse_uint(text, seconds) ? check_limit(wall, seconds) : parse_limit(wall, text);
  if (!value) return refuse(kFlag, text, value.error());
  layer.limits["wall"] = {*value, std::string(kFlag)};
  return {};
}

}  // namespace

base::Result<PolicyLayer> flags_layer(const FlagOverrides& flags) {
  PolicyLayer layer;
  if (flags.agent) {
    const auto name = parse_agent_name(*flags.agent);
    if (!name) return refuse("--agent", *flags.agent, name.error());
    layer = agent_layer(*name, "--agent");
  }
  BELLJAR_TRY(take_named("--mode", flags.mode, kModes, layer.mode));
  BELLJAR_TRY(take_named("--net", flags.net, kNetworks, layer.network));
  BELLJAR_TRY(take_named("--git", flags.git, kGitAccesses, layer.git));
  BELLJAR_TRY(take_hosts(flags.allow_hosts, layer.allow_hosts));
  BELLJAR_TRY(take_paths("--read", flags.read, layer.read));
  BELLJAR_TRY(take_paths("--write", flags.write, layer.write));
  BELLJAR_TRY(take_paths("--hide", flags.hide, layer.hide));
  BELLJAR_TRY(take_env(flags.env, layer));
  if (flags.timeout) BELLJAR_TRY(take_timeout(*flags.timeout, layer));
  BELLJAR_TRY(check_consistent(layer));
  return layer;
}

}  // namespace belljar::policy
