#include "plan/environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/path.h"
#include "base/text.h"
#include "plan/hook.h"
#include "plan/identity.h"
#include "policy/proxy_env.h"

namespace belljar::plan {
namespace {

constexpr std::array<std::string_view, 9> kAlwaysPassed = {
    "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"};

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

class Variables {
 public:
  void set(std::string_view name, std::string value, bool secret = false) {
    all_.insert_or_assign(std::string(name), EnvVar{std::string(name), std::move(value), secret});
  }
  [[nodiscard]] std::vector<EnvVar> list() const {
    std::vector<EnvVar> out;
    out.reserve(all_.size());
    for (const auto& [name, variable] : all_) out.push_back(variable);
    return out;
  }

 private:
  std::map<std::string, EnvVar, std::less<>> all_;
};

const std::string* value_of(const Facts& facts, std::string_view name) {
  const auto found = facts.environment.find(name);
  return found == facts.environment.end() ? nullptr : &found->second;
}

bool in_guest(const Draft& draft, const PathFact& fact) {
  return fact.kind != FileKind::kAbsent && draft.table.shows(fact.real);
}

void pass_standard(const Draft& draft, Variables& out) {
  for (const auto& [name, value] : draft.facts.environment) {
    if (name.starts_with("LC_") || std::ranges::find(kAlwaysPassed, name) != kAlwaysPassed.end()) out.set(name, value);
  }
}

void pass_certificates(Draft& draft, Variables& out) {
  for (const std::string_view name : ca_variables()) {
    const std::string* value = value_of(draft.facts, name);
    if (value == nullptr || value->empty()) continue;
    if (in_guest(draft, draft.fact(base::normal_path(*value)))) {
      out.set(name, *value);
    } else {
      draft.notes.push_back(std::string(name) + " names '" + *value +
                            "', which the guest does not have: not passed (add --read for it)");
    }
  }
}

base::Status pass_policy(Draft& draft, Variables& out) {
  const policy::Policy& policy = draft.policy;
  for (const auto& [name, value] : policy.agent.env) out.set(name, value, looks_secret(name));
  for (const std::string& name : policy.agent.credential_env) {
    if (const std::string* value = value_of(draft.facts, name)) out.set(name, *value, true);
  }
  for (const std::string& name : policy.env.allow) {
    if (const std::string* value = value_of(draft.facts, name)) {
      out.set(name, *value, looks_secret(name));
    } else {
      draft.notes.push_back(name + " is allowed by the policy but not set");
    }
  }
  for (const auto& [name, value] : policy.env.set) out.set(name, value, looks_secret(name));
  for (const EnvVar& variable : out.list()) {
    const bool bad_name =
        variable.name.empty() || variable.name.find_first_of(std::string_view("=\0", 2)) != std::string::npos;
    if (bad_name) return base::refuse("env", variable.name, "a name is not empty and has no '=' or NUL, refusing");
    if (variable.value.contains('\0')) return base::refuse("env", variable.name, "its value holds a NUL, refusing");
  }
  return {};
}

// The JVM takes its proxy from this variable alone. A person's own options stay and, being the later ones, win.
void add_to_java_options(uint16_t proxy_port, Variables& out) {
  constexpr std::string_view kName = "JAVA_TOOL_OPTIONS";
  for (const auto& [name, ours] : policy::proxy_environment(proxy_port)) {
    if (name != kName) continue;
    for (const EnvVar& variable : out.list()) {
      if (variable.name != kName || variable.value == ours) continue;
      const std::string both = variable.value.empty() ? ours : ours + " " + variable.value;
      out.set(name, both, variable.secret);
      return;
    }
  }
}

}  // namespace

bool looks_secret(std::string_view name) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  for (const char* mark : {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH", "COOKIE"}) {
    if (upper.contains(mark)) return true;
  }
  for (const char* end : {"_KEY", "APIKEY", "_PAT", "_PASS", "_DSN", "_PWD"}) {
    if (upper.ends_with(end)) return true;
  }
  return upper.contains("_KEY_") || upper.ends_with("_URL_AUTH") || upper == "DATABASE_URL";
}

std::string guest_path(Draft& draft) {
  const std::string* host = value_of(draft.facts, "PATH");
  std::vector<std::string> kept;
  std::vector<std::string> left_out;
  for (std::string& folder : path_folders(host != nullptr ? *host : kDefaultPath)) {
    const PathFact fact = draft.fact(folder);
    const bool shown = fact.kind == FileKind::kFolder && draft.table.shows(fact.real);
    // Or a folder of the guest's own that got a program or a link to one.
    const bool has_program = fact.kind == FileKind::kFolder && draft.table.has_entry_in(fact.real);
    if (shown || has_program) {
      draft.table.add_links(fact.links, "leads to a folder of PATH");
      kept.push_back(std::move(folder));
    } else if (fact.kind == FileKind::kFolder) {
      left_out.push_back(std::move(folder));
    }
  }
  if (!left_out.empty()) draft.notes.push_back("left out of PATH: " + base::join(left_out, ", "));
  return kept.empty() ? std::string(kDefaultPath) : base::join(kept, ":");
}

std::string guest_shell(const Draft& draft) {
  const std::string* shell = value_of(draft.facts, "SHELL");
  if (shell == nullptr) return "/bin/sh";
  const PathFact fact = draft.fact(base::normal_path(*shell));
  if (fact.kind != FileKind::kFile || !draft.table.shows(fact.real)) return "/bin/sh";
  const bool reachable = std::ranges::all_of(fact.links, [&](const LinkFact& link) {
    return draft.table.shows(link.path) || draft.table.at(link.path) != nullptr;
  });
  return reachable ? *shell : "/bin/sh";
}

base::Result<std::vector<EnvVar>> make_environment(Draft& draft, const std::string& start, uint16_t proxy_port) {
  Variables out;
  pass_standard(draft, out);
  pass_certificates(draft, out);
  const std::string name = user_name(draft.facts, draft.identity);
  const bool container = draft.policy.isolation.mode == policy::Mode::kDocker;
  std::string path = container ? std::string(kDefaultPath) : guest_path(draft);  // of a container: container_plan.h
  if (draft.table.has_entry_in(kNotifyFolder)) path.append(":").append(kNotifyFolder);
  out.set("PATH", std::move(path));
  out.set("HOME", draft.home);
  out.set("USER", name);
  out.set("LOGNAME", name);
  out.set("SHELL", container ? "/bin/sh" : guest_shell(draft));
  out.set("TMPDIR", "/tmp");
  out.set("PWD", start);
  if (draft.policy.isolation.network == policy::Network::kDeny) {
    for (auto& [variable, value] : policy::proxy_environment(proxy_port)) out.set(variable, std::move(value));
  }
  if (std::string hook = hook_of_guest(draft.policy); !hook.empty()) out.set(kHookVariable, std::move(hook));
  BELLJAR_TRY(pass_policy(draft, out));
  if (draft.policy.isolation.network == policy::Network::kDeny) add_to_java_options(proxy_port, out);
  return out.list();
}

}  // namespace belljar::plan
