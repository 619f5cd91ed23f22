#include "policy/parse.h"

#include <algorithm>

#include "base/text.h"
#include "policy/consistent.h"
#include "policy/hook_url.h"
#include "policy/parse_hosts.h"
#include "policy/preset.h"
#include "policy/target.h"
#include "policy/walker.h"

namespace belljar::policy {
namespace {

const Names kTop = {"extends", "agent", "git",      "target", "isolation", "files",
                    "limits",  "env",   "terminal", "audit",  "hook"};
const Names kIsolation = {"mode",   "network", "docker_image", "allow_hosts", "deny_hosts",  "host_ports",
                          "expose", "nested",  "transparent",  "ask",         "ask_timeout", "upstream_proxy"};
const Names kLaunchForm = {"mode", "network", "docker_image", "allow_hosts"};
constexpr uint64_t kMostAskSeconds = 3600;
const Names kFiles = {"read", "write", "hide", "approve", "home", "toolchains", "allow_home"};
const Names kTerminal = {"clipboard"};
const Names kEnv = {"allow", "set"};
const Names kAudit = {"file", "chain", "required"};
const Names kHook = {"url", "token_env", "token_file"};

Names limit_names() {
  Names names;
  for (const LimitSpec& spec : limit_specs()) names.push_back(spec.name);
  return names;
}

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

base::Status parse_exposed(const Section& section, PolicyLayer& layer) {
  const Node* list = section.find("expose");
  if (list == nullptr) return {};
  if (list->kind != Node::Kind::kList) return section.wrong_type(*list, "expose", "a list of ports");
  for (const Node& node : list->items) {
    if (node.kind != Node::Kind::kInteger && node.kind != Node::Kind::kString) {
      return section.wrong_type(node, "expose", "a port, as 3000 or \"8080:3000\"");
    }
    const std::string text = node.kind == Node::Kind::kString ? node.text : std::to_string(node.integer);
    const auto port = parse_exposed_port(text);
    if (!port) return section.refuse(node, "expose", text, port.error());
    const bool repeated = std::ranges::any_of(layer.expose, [&](const auto& said) { return said.value == *port; });
    if (repeated) return section.refuse(node, "expose", text, {"listed twice", "name it once"});
    layer.expose.push_back({*port, section.place_of(node.at)});
  }
  return {};
}

base::Status parse_ask(const Section& section, PolicyLayer& layer) {
  BELLJAR_TRY(section.boolean("ask", layer.ask));
  const Node* time = section.find("ask_timeout");
  if (time == nullptr) return {};
  if (time->kind != Node::Kind::kString) return section.wrong_type(*time, "ask_timeout", "a time such as \"60s\"");
  const auto seconds = parse_duration(time->text);
  if (!seconds) return section.refuse(*time, "ask_timeout", time->text, seconds.error());
  if (*seconds == 0 || *seconds > kMostAskSeconds) {
    return section.refuse(*time, "ask_timeout", time->text, {"out of bounds", "between 1s and 1h"});
  }
  layer.ask_seconds = {*seconds, section.place_of(time->at)};
  return {};
}

base::Status parse_isolation(const Section& section, const Names& keys, PolicyLayer& layer) {
  BELLJAR_TRY(section.check_keys(keys));
  BELLJAR_TRY(section.named("mode", kModes, layer.mode));
  BELLJAR_TRY(section.named("network", kNetworks, layer.network));
  BELLJAR_TRY(section.named("transparent", kTransparents, layer.transparent));
  if (const Node* image = section.find("docker_image")) {
    BELLJAR_ASSIGN(std::string name, section.text(*image, "docker_image", parse_image));
    layer.docker_image = {std::move(name), section.place_of(image->at)};
  }
  BELLJAR_ASSIGN(layer.allow_hosts, parse_allow_hosts(section));
  BELLJAR_ASSIGN(layer.deny_hosts, parse_deny_hosts(section));
  BELLJAR_ASSIGN(layer.host_ports, parse_host_ports(section));
  BELLJAR_TRY(section.boolean("nested", layer.nested));
  if (const Node* upstream = section.find("upstream_proxy")) {
    BELLJAR_ASSIGN(std::string url, section.text(*upstream, "upstream_proxy", parse_upstream_proxy));
    layer.upstream_proxy = {std::move(url), section.place_of(upstream->at)};
  }
  BELLJAR_TRY(parse_ask(section, layer));
  return parse_exposed(section, layer);
}

base::Status parse_files(const Section& section, PolicyLayer& layer) {
  BELLJAR_TRY(section.check_keys(kFiles));
  BELLJAR_ASSIGN(layer.read, section.list("read", parse_path));
  BELLJAR_ASSIGN(layer.write, section.list("write", parse_path));
  BELLJAR_ASSIGN(layer.hide, section.list("hide", parse_path));
  BELLJAR_ASSIGN(layer.approve, section.list("approve", parse_pattern));
  BELLJAR_TRY(section.named("toolchains", kToolchains, layer.toolchains));
  BELLJAR_TRY(section.boolean("allow_home", layer.allow_home));
  return section.named("home", kHomes, layer.home);
}

base::Status parse_limits(const Section& section, PolicyLayer& layer) {
  BELLJAR_TRY(section.check_keys(limit_names()));
  for (const Member& member : section.members()) {
    const LimitSpec& spec = *find_limit(member.key);
    const Node& node = member.value;
    Verdict<uint64_t> value = 0;
    std::string written;
    if (node.kind == Node::Kind::kString && spec.unit != LimitSpec::Unit::kCount) {
      written = node.text;
      value = parse_limit(spec, node.text);
      // A percentage needs its sign: a bare 2 could be two cores or two per cent.
    } else if (node.kind == Node::Kind::kInteger && spec.unit != LimitSpec::Unit::kPercent) {
      written = std::to_string(node.integer);
      value = check_limit(spec, node.integer < 0 ? 0 : static_cast<uint64_t>(node.integer));
    } else {
      return section.wrong_type(node, member.key, expected_text(spec.unit));
    }
    if (!value) return section.refuse(node, member.key, written, value.error());
    layer.limits[member.key] = {*value, section.place_of(node.at)};
  }
  return {};
}

base::Status parse_env(const Section& section, PolicyLayer& layer) {
  BELLJAR_TRY(section.check_keys(kEnv));
  BELLJAR_ASSIGN(layer.env_allow, section.list("allow", parse_env_name));
  BELLJAR_ASSIGN(layer.env_set, section.variables("set"));
  return {};
}

base::Status parse_terminal(const Section& section, PolicyLayer& layer) {
  BELLJAR_TRY(section.check_keys(kTerminal));
  return section.named("clipboard", kClipboards, layer.clipboard);
}

base::Status parse_audit(const Section& section, PolicyLayer& layer) {
  BELLJAR_TRY(section.check_keys(kAudit));
  if (const Node* file = section.find("file")) {
    BELLJAR_ASSIGN(std::string path, section.text(*file, "file", parse_path));
    layer.audit_file = {std::move(path), section.place_of(file->at)};
  }
  BELLJAR_TRY(section.boolean("chain", layer.audit_chain));
  return section.boolean("required", layer.audit_required);
}

base::Status take_text(const Section& section, std::string_view key, const TextParser& parse,
                       std::optional<Said<std::string>>& out) {
  const Node* node = section.find(key);
  if (node == nullptr) return {};
  BELLJAR_ASSIGN(std::string text, section.text(*node, key, parse));
  out = {std::move(text), section.place_of(node->at)};
  return {};
}

base::Status parse_hook(const Section& section, PolicyLayer& layer) {
  BELLJAR_TRY(section.check_keys(kHook));
  BELLJAR_TRY(take_text(section, "url", canonical_hook_url, layer.hook_url));
  BELLJAR_TRY(take_text(section, "token_env", parse_env_name, layer.hook_token_env));
  return take_text(section, "token_file", parse_path, layer.hook_token_file);
}

Verdict<std::string> parse_extends(std::string_view text) {
  if (names_file(text)) return parse_argument(text);
  if (find_agent(text) != nullptr || find_host_set(text) != nullptr) return std::string(text);
  Names known = agent_names();
  for (const auto name : host_set_names()) known.push_back(name);
  return no("unknown preset", known_hint(text, known) + "; a file is written with a '/' or ends in .toml or .json");
}

base::Status parse_sections(const Section& top, PolicyLayer& layer) {
  BELLJAR_TRY(top.check_keys(kTop));
  BELLJAR_ASSIGN(layer.extends, top.list("extends", parse_extends));
  BELLJAR_TRY(top.named("git", kGitAccesses, layer.git));
  BELLJAR_TRY(take_text(top, "target", parse_target, layer.target));
  if (const Node* agent = top.find("agent")) {
    BELLJAR_ASSIGN(Agent parsed, parse_agent(top, *agent));
    layer.agent = {std::move(parsed), top.place_of(agent->at)};
  }
  struct Part {
    std::string_view name;
    base::Status (*parse)(const Section&, PolicyLayer&);
  };
  const Part parts[] = {
      {"isolation", [](const Section& section, PolicyLayer& to) { return parse_isolation(section, kIsolation, to); }},
      {"files", parse_files},
      {"limits", parse_limits},
      {"env", parse_env},
      {"terminal", parse_terminal},
      {"audit", parse_audit},
      {"hook", parse_hook}};
  for (const Part& part : parts) {
    const Node* node = top.find(part.name);
    // `"isolation": null` of a launch leaves it to the project's default.
    if (node == nullptr || (node->kind == Node::Kind::kNull && part.name == "isolation")) continue;
    BELLJAR_TRY(part.parse(top.sub(part.name, *node), layer));
  }
  return {};
}

bool is_launch_form(const Document& document) {
  const auto& members = document.root.members;
  return document.format == Format::kJson &&
         std::any_of(members.begin(), members.end(), [](const Member& m) { return contains(kLaunchForm, m.key); });
}

// The launch form that other programs store and send. Its defaults are not those of our own files.
base::Status parse_launch_form(const Document& document, PolicyLayer& layer) {
  Node table = document.root;
  // Programs that write every field write an empty one for what is not said; an empty mode is an opt-out.
  std::erase_if(table.members, [&](const Member& member) {
    if (contains(kLaunchForm, member.key) && member.value.kind == Node::Kind::kNull) return true;  // as if absent
    const bool empty = member.value.kind == Node::Kind::kString && member.value.text.empty();
    if (empty && member.key == "mode") layer.mode = {Mode::kNone, place(document.name, member.value.at)};
    return empty && (member.key == "docker_image" || member.key == "mode");
  });
  for (const Member& member : table.members) {
    if (!contains(kTop, member.key)) continue;
    return base::refuse(place(document.name, member.at), "",
                        "'" + member.key + "' cannot stand beside the keys of the launch form",
                        "write mode, network, docker_image and allow_hosts under isolation");
  }
  BELLJAR_TRY(parse_isolation(Section(document, table, ""), kLaunchForm, layer));
  layer.whole_isolation = true;
  const std::string here = place(document.name, document.root.at);
  if (!layer.mode) layer.mode = {Mode::kNone, here + ": launch form without a mode"};
  if (!layer.network) layer.network = {Network::kAllow, here + ": launch form without a network"};
  return {};
}

}  // namespace

std::string home_of_key(std::string_view key) {
  const std::string name(key);
  if (contains(kIsolation, key)) return "isolation." + name;
  if (contains(kFiles, key)) return "files." + name;
  if (find_limit(key) != nullptr) return "limits." + name;
  if (contains(kEnv, key)) return "env." + name;
  if (contains(kTerminal, key)) return "terminal." + name;
  if (contains(kHook, key)) return "hook." + name;
  if (contains(kTop, key)) return name + ", outside the other sections";
  return {};
}

bool names_file(std::string_view entry) {
  return entry.find('/') != std::string_view::npos || entry.ends_with(".toml") || entry.ends_with(".json");
}

base::Result<PolicyLayer> parse_policy(std::string_view text, std::string_view name) {
  BELLJAR_ASSIGN(Document document, read_document(text, name));
  PolicyLayer layer;
  if (is_launch_form(document)) {
    BELLJAR_TRY(parse_launch_form(document, layer));
  } else {
    BELLJAR_TRY(parse_sections(Section(document, document.root, ""), layer));
  }
  BELLJAR_TRY(check_consistent(layer));
  return layer;
}

}  // namespace belljar::policy
