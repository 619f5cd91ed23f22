#include "policy/import.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>

#include "base/text.h"
#include "policy/document.h"
#include "policy/host_rule.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

// How the value of a key is taken over. What is said of a key alone stands in its Rule.
enum class How : uint8_t {
  kHosts,
  kDeniedHosts,
  kWrite,
  kReadOnly,
  kRead,
  kHide,
  kPermissions,
  kVariables,
  kFixed,
  kSwitch
};

struct Rule {
  std::string_view key;  // with dots
  How how = How::kFixed;
  // kFixed: what is said of any value. kSwitch: of `true`; false means nothing.
  Outcome outcome = Outcome::kNotSupported;
  std::string_view text{};
};

constexpr std::string_view kOwnTmp = "the guest has a /tmp of its own";
constexpr std::string_view kNoSockets = "no socket of the host is in the guest";
constexpr std::string_view kLoopback = "the guest has a loopback of its own; name a port with 'expose' to reach it";
constexpr std::string_view kOneProxy = "the only way out is Belljar's own proxy";
constexpr std::string_view kAllInside = "the whole agent runs sealed, with all its commands";

constexpr std::array kSrtRules = {
    Rule{"network.allowedDomains", How::kHosts},
    Rule{"network.deniedDomains", How::kDeniedHosts},
    Rule{"network.allowUnixSockets", How::kFixed, Outcome::kStricter, kNoSockets},
    Rule{"network.allowAllUnixSockets", How::kSwitch, Outcome::kStricter, kNoSockets},
    Rule{"network.allowLocalBinding", How::kSwitch, Outcome::kStricter, kLoopback},
    Rule{"network.allowManagedDomainsOnly", How::kFixed, Outcome::kNotSupported, "there are no managed settings here"},
    Rule{"network.httpProxyPort", How::kFixed, Outcome::kStricter, kOneProxy},
    Rule{"network.socksProxyPort", How::kFixed, Outcome::kStricter, kOneProxy},
    Rule{"filesystem.allowWrite", How::kWrite},
    Rule{"filesystem.denyWrite", How::kReadOnly},
    Rule{"filesystem.denyRead", How::kHide},
    Rule{"filesystem.allowRead", How::kRead},
    Rule{"ignoreViolations", How::kFixed, Outcome::kStricter, "nothing is let through by being ignored"},
    Rule{"enableWeakerNestedSandbox", How::kSwitch, Outcome::kStricter, "the boundary is never made weaker by itself"},
};

constexpr std::array kClaudeRules = {
    Rule{"sandbox.enabled", How::kFixed, Outcome::kStricter, kAllInside},
    Rule{"sandbox.autoAllowBashIfSandboxed", How::kFixed, Outcome::kNotSupported, "a question of the CLI's own"},
    Rule{"sandbox.excludedCommands", How::kFixed, Outcome::kStricter, kAllInside},
    Rule{"sandbox.allowUnsandboxedCommands", How::kSwitch, Outcome::kStricter, kAllInside},
    Rule{"sandbox.failIfUnavailable", How::kFixed, Outcome::kStricter, "Belljar never starts without its boundary"},
    Rule{"permissions.allow", How::kPermissions},
    Rule{"permissions.deny", How::kPermissions},
    Rule{"permissions.ask", How::kFixed, Outcome::kNotSupported, "a question of the CLI's own"},
    Rule{"permissions.defaultMode", How::kFixed, Outcome::kNotSupported, "a question of the CLI's own"},
    Rule{"permissions.additionalDirectories", How::kWrite},
};

constexpr std::array kCodexRules = {
    Rule{"sandbox_workspace_write.writable_roots", How::kWrite},
    Rule{"sandbox_workspace_write.exclude_tmpdir_env_var", How::kFixed, Outcome::kStricter, kOwnTmp},
    Rule{"sandbox_workspace_write.exclude_slash_tmp", How::kFixed, Outcome::kStricter, kOwnTmp},
    Rule{"shell_environment_policy.set", How::kVariables},
    Rule{"shell_environment_policy.inherit", How::kFixed, Outcome::kStricter, "only harmless variables pass"},
    Rule{"shell_environment_policy.ignore_default_excludes", How::kFixed, Outcome::kStricter,
         "only harmless variables pass"},
    Rule{"shell_environment_policy.exclude", How::kFixed, Outcome::kStricter, "only harmless variables pass"},
    Rule{"shell_environment_policy.include_only", How::kFixed, Outcome::kStricter, "only harmless variables pass"},
    Rule{"approval_policy", How::kFixed, Outcome::kNotSupported, "a question of the CLI's own"},
};

class Importer {
 public:
  Importer(const Document& document, std::span<const Rule> rules, std::string_view prefix)
      : document_(document), rules_(rules), prefix_(prefix) {}

  // Every key below `table`, whose own path is `path`.
  void take_table(const Node& table, const std::string& path) {
    for (const Member& member : table.members) {
      const std::string key = path.empty() ? member.key : path + "." + member.key;
      if (const Rule* rule = find(key)) {
        take(*rule, key, member.value);
      } else if (member.value.kind == Node::Kind::kTable && is_section(key)) {
        take_table(member.value, key);
      } else {
        tell(key, Outcome::kNotSupported, "unknown here");
      }
    }
  }

  void tell(std::string key, Outcome outcome, std::string_view text) {
    out_.rows.push_back({std::move(key), outcome, std::string(text)});
  }

  Import& result() { return out_; }

 private:
  [[nodiscard]] std::string_view unprefixed(std::string_view key) const {
    return key.starts_with(prefix_) ? key.substr(prefix_.size()) : key;
  }

  [[nodiscard]] const Rule* find(std::string_view key) const {
    // Claude's `sandbox` table holds what the runtime's file holds at its top.
    for (const Rule& rule : rules_) {
      if (rule.key == key) return &rule;
    }
    if (prefix_.empty() || !key.starts_with(prefix_)) return nullptr;
    const auto* const found = std::ranges::find(kSrtRules, unprefixed(key), &Rule::key);
    return found == kSrtRules.end() ? nullptr : &*found;
  }

  [[nodiscard]] bool is_section(std::string_view key) const {
    const std::string start = std::string(key) + ".";
    const auto begins = [](std::string_view path) {
      return [path](const Rule& rule) { return rule.key.starts_with(path); };
    };
    return std::ranges::any_of(rules_, begins(start)) || start == prefix_ ||
           (!prefix_.empty() && start.starts_with(prefix_) &&
            std::ranges::any_of(kSrtRules, begins(unprefixed(start))));
  }

  void take(const Rule& rule, const std::string& key, const Node& value) {
    if (rule.how == How::kFixed) return tell(key, rule.outcome, rule.text);
    if (rule.how == How::kSwitch) {
      const bool off = value.kind == Node::Kind::kBoolean && value.integer == 0;
      return tell(key, off ? Outcome::kCarried : rule.outcome, off ? "so it is here" : rule.text);
    }
    if (rule.how == How::kVariables) return take_variables(key, value);
    if (value.kind != Node::Kind::kList) return tell(key, Outcome::kNotSupported, "not a list of texts");
    for (const Node& entry : value.items) {
      if (entry.kind != Node::Kind::kString) {
        tell(key, Outcome::kNotSupported, "an entry that is no text");
        continue;
      }
      take_entry(rule.how, key, entry);
    }
  }

  void take_entry(How how, const std::string& key, const Node& entry) {
    const std::string here = key + " \"" + entry.text + "\"";
    switch (how) {
      case How::kHosts:
        return take_host(here, entry.text, entry.at, out_.layer.allow_hosts, parse_host_rule);
      case How::kDeniedHosts:
        return take_host(here, entry.text, entry.at, out_.layer.deny_hosts, parse_deny_rule);
      case How::kWrite:
        return take_path(here, entry.text, entry.at, out_.layer.write, "files.write");
      case How::kReadOnly:
        return take_path(here, entry.text, entry.at, out_.layer.read, "files.read, which is read-only");
      case How::kRead:
        return take_path(here, entry.text, entry.at, out_.layer.read, "files.read");
      case How::kHide:
        return take_path(here, entry.text, entry.at, out_.layer.hide, "files.hide");
      default:
        return take_permission(key, here, entry);
    }
  }

  void take_host(const std::string& here, std::string_view text, Position at, std::vector<HostRule>& list,
                 base::Result<HostRule> (*parse)(std::string_view, std::string_view)) {
    auto rule = parse(text, place(document_.name, at));
    const bool denies = &list == &out_.layer.deny_hosts;
    if (!rule) {
      // A host that stays allowed by a wildcard although that file denies it is for a person to see.
      return tell(here, denies ? Outcome::kWider : Outcome::kNotSupported, rule.error().reason);
    }
    tell(here, Outcome::kCarried, denies ? "isolation.deny_hosts" : "isolation.allow_hosts");
    if (std::ranges::find(list, *rule) == list.end()) list.push_back(std::move(*rule));
  }

  void take_path(const std::string& here, std::string_view text, Position at, std::vector<Said<std::string>>& list,
                 std::string_view what) {
    const bool denies = &list != &out_.layer.write && what != "files.read";
    auto path = parse_path(text);
    if (!path) return tell(here, denies ? Outcome::kWider : Outcome::kNotSupported, path.error().reason);
    if (&list == &out_.layer.write && *path == ".") return tell(here, Outcome::kCarried, "the work folder is writable");
    if (*path == "/tmp" || path->starts_with("/tmp/")) return tell(here, Outcome::kStricter, kOwnTmp);
    if (const std::string_view other = other_list(*path, list); !other.empty()) {
      return tell(here, denies ? Outcome::kWider : Outcome::kNotSupported,
                  "the same path stands under " + std::string(other) + " already");
    }
    tell(here, Outcome::kCarried, what);
    const bool known = std::ranges::any_of(list, [&](const auto& said) { return said.value == *path; });
    if (!known) list.push_back({std::move(*path), place(document_.name, at)});
  }

  // A policy names a path in one list only.
  [[nodiscard]] std::string_view other_list(const std::string& path, const std::vector<Said<std::string>>& mine) const {
    struct List {
      std::string_view name;
      const std::vector<Said<std::string>>& entries;
    };
    const PolicyLayer& layer = out_.layer;
    for (const List& list :
         {List{"files.read", layer.read}, {"files.write", layer.write}, {"files.hide", layer.hide}}) {
      if (&list.entries == &mine) continue;
      if (std::ranges::any_of(list.entries, [&](const auto& said) { return said.value == path; })) return list.name;
    }
    return {};
  }

  // `Read(PATH)`, `Edit(PATH)`, `WebFetch(domain:HOST)` of Claude Code. Its paths: `//x` absolute, `/x` relative to the
  // settings, whose place is not known here.
  void take_permission(const std::string& key, const std::string& here, const Node& entry) {
    const bool denies = key.ends_with(".deny");
    const size_t open = entry.text.find('(');
    const std::string tool = entry.text.substr(0, open);
    std::string inside;
    if (open != std::string::npos && entry.text.ends_with(')')) {
      inside = entry.text.substr(open + 1, entry.text.size() - open - 2);
    }
    constexpr std::string_view kDomain = "domain:";
    if (tool == "WebFetch" && inside.starts_with(kDomain)) {
      inside.erase(0, kDomain.size());
      return denies ? take_host(here, inside, entry.at, out_.layer.deny_hosts, parse_deny_rule)
                    : take_host(here, inside, entry.at, out_.layer.allow_hosts, parse_host_rule);
    }
    const bool edits = tool == "Edit" || tool == "Write";
    if ((!edits && tool != "Read") || inside.empty()) {
      return tell(here, Outcome::kNotSupported, "what the CLI asks of a person is not what a guest may do");
    }
    if (inside.starts_with("//")) {
      inside.erase(0, 1);
    } else if (inside.starts_with('/')) {
      return tell(here, denies ? Outcome::kWider : Outcome::kNotSupported, "relative to the settings' own folder");
    }
    std::vector<Said<std::string>>& list = !denies && edits   ? out_.layer.write
                                           : denies && !edits ? out_.layer.hide
                                                              : out_.layer.read;
    take_path(here, inside, entry.at, list,
              !denies ? (edits ? "files.write" : "files.read")
              : edits ? "files.read, which is read-only"
                      : "files.hide");
  }

  void take_variables(const std::string& key, const Node& table) {
    for (const Member& member : table.members) {
      const std::string here = key + "." + member.key;
      const auto name = parse_env_name(member.key);
      if (!name || member.value.kind != Node::Kind::kString) {
        tell(here, Outcome::kNotSupported, name ? "not a text" : name.error().reason);
        continue;
      }
      if (is_guarded_env(*name)) {
        tell(here, Outcome::kNotSupported, "it makes programs load code: say --env yourself");
        continue;
      }
      out_.layer.env_set[*name] = {member.value.text, place(document_.name, member.value.at)};
      tell(here, Outcome::kCarried, "env.set");
    }
  }

  const Document& document_;
  std::span<const Rule> rules_;
  std::string_view prefix_;
  Import out_;
};

const Node* member(const Node& table, std::string_view key) {
  const auto found = std::ranges::find(table.members, key, &Member::key);
  return found == table.members.end() ? nullptr : &found->value;
}

// Codex: what its three modes mean here.
void take_codex_mode(Importer& importer, const Node& root) {
  const Node* mode = member(root, "sandbox_mode");
  const std::string text = mode != nullptr ? mode->text : "";
  const std::string key = mode != nullptr ? "sandbox_mode \"" + text + "\"" : "sandbox_mode (absent)";
  if (text == "workspace-write") {
    importer.tell(key, Outcome::kCarried, "the work folder is writable, the rest is not");
  } else if (text == "danger-full-access") {
    importer.tell(key, Outcome::kStricter, "there is a boundary here");
  } else {
    importer.tell(key, Outcome::kWider, "the work folder is always writable here");
  }
  const Node* section = member(root, "sandbox_workspace_write");
  const Node* network = section != nullptr ? member(*section, "network_access") : nullptr;
  const bool open = network != nullptr && network->kind == Node::Kind::kBoolean && network->integer != 0;
  const std::string name = "sandbox_workspace_write.network_access";
  if (open) {
    importer.tell(name, Outcome::kStricter, "only the hosts of the policy; name them with allow_hosts");
  } else {
    importer.tell(name + (network == nullptr ? " (absent)" : ""), Outcome::kWider,
                  "commands share the agent's own way to its model and the registries");
  }
}

// Codex: what else decides about its sandbox. None of it is taken over, and a profile of permissions can deny things.
void tell_codex_profiles(Importer& importer, const Node& root) {
  constexpr std::string_view kOnlyTop = "only what stands at the top of the file is read";
  for (const Member& each : root.members) {
    if (each.key == "default_permissions" || each.key == "sandbox_permissions" || each.key == "profile") {
      importer.tell(each.key + " \"" + each.value.text + "\"", Outcome::kNotSupported, kOnlyTop);
    }
    if (each.key == "permissions") {
      for (const Member& profile : each.value.members) {
        importer.tell("permissions." + profile.key, Outcome::kWider,
                      "what it denies is not denied here: say it with files.hide and deny_hosts");
      }
    }
    if (each.key != "profiles" && each.key != "projects") continue;
    for (const Member& profile : each.value.members) {
      for (const Member& setting : profile.value.members) {
        if (setting.key != "sandbox_mode" && setting.key != "sandbox_workspace_write" &&
            setting.key != "approval_policy" && setting.key != "default_permissions" && setting.key != "trust_level") {
          continue;
        }
        importer.tell(each.key + "." + profile.key + "." + setting.key, Outcome::kNotSupported, kOnlyTop);
      }
    }
  }
}

}  // namespace

std::string_view to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCarried:
      return "carried";
    case Outcome::kStricter:
      return "stricter here";
    case Outcome::kNotSupported:
      return "not supported";
    case Outcome::kWider:
      return "WIDER HERE";
  }
  return "not supported";
}

base::Result<Import> import_settings(ImportFormat format, std::string_view text, std::string_view name) {
  BELLJAR_ASSIGN(Document document, read_document(text, name));
  const auto only = [&](std::initializer_list<std::string_view> keys) {
    std::erase_if(document.root.members,
                  [&](const Member& m) { return std::ranges::find(keys, std::string_view(m.key)) == keys.end(); });
  };
  if (format == ImportFormat::kSrt) {
    Importer importer(document, kSrtRules, "");
    importer.take_table(document.root, "");
    return std::move(importer.result());
  }
  if (format == ImportFormat::kClaude) {
    only({"sandbox", "permissions"});
    Importer importer(document, kClaudeRules, "sandbox.");
    importer.take_table(document.root, "");
    return std::move(importer.result());
  }
  Importer importer(document, kCodexRules, "");
  take_codex_mode(importer, document.root);
  tell_codex_profiles(importer, document.root);
  for (Member& section : document.root.members) {
    if (section.key == "sandbox_workspace_write") {
      std::erase_if(section.value.members, [](const Member& m) { return m.key == "network_access"; });
    }
  }
  only({"sandbox_workspace_write", "shell_environment_policy", "approval_policy"});
  importer.take_table(document.root, "");
  return std::move(importer.result());
}

}  // namespace belljar::policy
