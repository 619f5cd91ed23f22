#include "plan/hook.h"

#include <algorithm>

#include "base/path.h"
#include "policy/hook_url.h"

namespace belljar::plan {
namespace {

constexpr size_t kLongestToken = 4096;
constexpr size_t kShortestSecret = 8;  // a shorter one is in some variable by chance

bool fits_a_field(std::string_view token) {
  return !token.empty() && token.size() <= kLongestToken &&
         std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

base::Result<policy::Hook> make_hook(const policy::Policy& policy, const Facts& facts, const std::vector<EnvVar>& env) {
  constexpr std::string_view kKey = "hook.token_env";
  const std::string& name = policy.hook.token_env;
  const std::string& file = policy.hook.token_file;
  if (name.empty() && file.empty()) return policy.hook;
  if (policy.hook.url.empty()) {
    return base::refuse(name.empty() ? "hook.token_file" : kKey, name.empty() ? file : name,
                        "no URL is named that it would be sent to, refusing", "name it: --hook-url URL");
  }
  if (name.empty()) return policy.hook;
  const auto token = facts.environment.find(name);
  if (token == facts.environment.end()) {
    return base::refuse(kKey, name, "that variable is not set, refusing", "set it, or leave the token out");
  }
  if (!fits_a_field(token->second)) {
    return base::refuse(kKey, name, "its value cannot stand in a header field, refusing",
                        "1 to 4096 visible ASCII characters without spaces");
  }
  for (const EnvVar& variable : env) {
    if (variable.name != name && (variable.value != token->second || token->second.size() < kShortestSecret)) continue;
    return base::refuse(kKey, name, "the guest would get it as " + variable.name + ", refusing",
                        "take that variable out of env.allow and env.set, or use another for the token");
  }
  return policy.hook;
}

base::Result<std::string> place_token_file(const policy::Hook& hook, const Facts& facts,
                                           const std::vector<Mount>& mounts) {
  if (hook.token_file.empty()) return std::string();
  BELLJAR_ASSIGN(std::string path, expand_path(hook.token_file, facts.home, facts.work_folder));
  for (const Mount& mount : mounts) {
    if (mount.kind != MountKind::kBind || !base::is_within(path, mount.source)) continue;
    return base::refuse("hook.token_file", path, "the guest would see it, refusing",
                        "name a file outside of " + mount.source);
  }
  return path;
}

void add_notify(Draft& draft) {
  if (draft.policy.hook.url.empty() || draft.policy.isolation.network == policy::Network::kAllow) return;
  const auto found = draft.facts.paths.find(kNotifyFact);
  constexpr mode_t kForOthers = 0005;  // root's guest is nobody here
  if (found == draft.facts.paths.end() || found->second.kind != FileKind::kFile ||
      (found->second.mode & kForOthers) != kForOthers) {
    draft.notes.emplace_back("hook: belljar-notify is not beside belljar, so 'belljar notify' is not in the guest");
    return;
  }
  draft.table.add({.target = std::string(kNotifyFolder) + "/belljar",
                   .source = found->second.real,
                   .reason = "posts events to the hook"});
}

std::string hook_of_guest(const policy::Policy& policy) {
  if (policy.hook.url.empty() || policy.isolation.network == policy::Network::kAllow) return policy.hook.url;
  const auto url = policy::parse_hook_url(policy.hook.url);
  return url ? policy::hook_url_in_guest(*url) : std::string();
}

}  // namespace belljar::plan
