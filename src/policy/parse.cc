#include "policy/parse.h"

#include <algorithm>

#include "base/text.h"
#include "policy/consistent.h"
#include "policy/host_rule.h"
#include "policy/preset.h"
#include "policy/walker.h"

namespace belljar::policy {
namespace {

const Names kTop = {"extends", "agent", "git", "isolation", "files", "limits", "env"};
const Names kIsolation = {"mode", "network", "docker_image", "allow_hosts"};
const Names kFiles = {"read", "write", "hide", "home"};
const Names kEnv = {"allow", "set"};

Names limit_names() {
  Names names;
  for (const LimitSpec& spec : limit_specs()) names.push_back(spec.name);
  return names;
}

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

base::Result<std::vector<HostRule>> parse_hosts(const Section& section) {
  const auto canonical = [](std::string_view text) -> Verdict<std::string> {
    auto rule = parse_host_rule(text, "");
    if (!rule) return no(std::move(rule.error().reason), std::move(rule.error().hint));
    return to_text(*rule);
  };
  BELLJAR_ASSIGN(auto entries, section.list("allow_hosts", canonical));
  std::vector<HostRule> rules;
  for (const auto& [text, source] : entries) {
    BELLJAR_ASSIGN(HostRule rule, parse_host_rule(text, source));
    rules.push_back(std::move(rule));
  }
  return rules;
}

base::Status parse_isolation(const Section& section, PolicyLayer& layer) {
  BELLJAR_TRY(section.check_keys(kIsolation));
  BELLJAR_TRY(section.named("mode", kModes, layer.mode));
  BELLJAR_TRY(section.named("network", kNetworks, layer.network));
  if (const Node* image = section.find("docker_image")) {
    BELLJAR_ASSIGN(std::string name, section.text(*image, "docker_image", parse_image));
    layer.docker_image = {std::move(name), section.place_of(image->at)};
  }
  BELLJAR_ASSIGN(layer.allow_hosts, parse_hosts(section));
  return {};
}

base::Status parse_files(const Section& section, PolicyLayer& layer) {
  BELLJAR_TRY(section.check_keys(kFiles));
  BELLJAR_ASSIGN(layer.read, section.list("read", parse_path));
  BELLJAR_ASSIGN(layer.write, section.list("write", parse_path));
  BELLJAR_ASSIGN(layer.hide, section.list("hide", parse_path));
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
  if (const Node* agent = top.find("agent")) {
    BELLJAR_ASSIGN(Agent parsed, parse_agent(top, *agent));
    layer.agent = {std::move(parsed), top.place_of(agent->at)};
  }
  struct Part {
    std::string_view name;
    base::Status (*parse)(const Section&, PolicyLayer&);
  };
  const Part parts[] = {
      {"isolation", parse_isolation}, {"files", parse_files}, {"limits", parse_limits}, {"env", parse_env}};
  for (const Part& part : parts) {
    if (const Node* node = top.find(part.name)) BELLJAR_TRY(part.parse(top.sub(part.name, *node), layer));
  }
  return {};
}

bool is_launch_form(const Document& document) {
  const auto& members = document.root.members;
  return document.format == Format::kJson &&
         std::any_of(members.begin(), members.end(), [](const Member& m) { return contains(kIsolation, m.key); });
}

// The launch form that other programs store and send. Its defaults are not those of our own files.
base::Status parse_launch_form(const Document& document, PolicyLayer& layer) {
  Node table = document.root;
  // Programs that write every field write an empty one for what is not said; an empty mode is an opt-out.
  std::erase_if(table.members, [&](const Member& member) {
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
  BELLJAR_TRY(parse_isolation(Section(document, table, ""), layer));
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
