#include "policy/host_rule.h"
#include "policy/preset.h"
#include "policy/walker.h"

namespace belljar::policy {
namespace {

Verdict<std::string> host_text(std::string_view text) {
  auto rule = parse_host_rule(text, "");
  if (!rule) return no(std::move(rule.error().reason), std::move(rule.error().hint));
  return to_text(*rule);
}

}  // namespace

base::Result<Agent> parse_agent(const Section& top, const Node& node) {
  if (node.kind == Node::Kind::kString) {
    BELLJAR_ASSIGN(std::string name, top.text(node, "agent", parse_agent_name));
    if (const Agent* known = find_agent(name)) return *known;
    // Nothing is bound by guesswork: an agent nobody described gets no path of the home.
    Agent unknown;
    unknown.name = std::move(name);
    return unknown;
  }
  if (node.kind != Node::Kind::kTable) return top.wrong_type(node, "agent", "a name or a table");
  const Section table = top.sub("agent", node);
  BELLJAR_TRY(table.check_keys({"name", "commands", "config_dirs", "config_files", "credential_env", "hosts",
                                "registries", "env", "extra_arguments"}));
  const Node* name = table.find("name");
  if (name == nullptr) {
    return top.refuse(node, "agent", "", {"has no name", "add name = \"…\""});
  }
  Agent agent;
  BELLJAR_ASSIGN(agent.name, table.text(*name, "name", parse_agent_name));
  BELLJAR_ASSIGN(agent.commands, table.plain_list("commands", parse_command_name));
  BELLJAR_ASSIGN(agent.config_dirs, table.plain_list("config_dirs", parse_home_path));
  BELLJAR_ASSIGN(auto files, table.list("config_files", parse_home_path));
  for (auto& [path, source] : files) {
    for (const std::string& folder : agent.config_dirs) {
      if (path != folder) continue;
      return base::refuse(source + ": agent.config_files", path, "is also in agent.config_dirs",
                          "it is either a file or a folder");
    }
    agent.config_files.push_back(std::move(path));
  }
  BELLJAR_ASSIGN(agent.credential_env, table.plain_list("credential_env", parse_env_name));
  BELLJAR_ASSIGN(agent.hosts, table.plain_list("hosts", host_text));
  BELLJAR_ASSIGN(agent.registries, table.plain_list("registries", host_text));
  BELLJAR_ASSIGN(agent.extra_arguments, table.plain_list("extra_arguments", parse_argument, true));
  BELLJAR_ASSIGN(auto env, table.variables("env"));
  for (auto& [variable, said] : env) agent.env[variable] = std::move(said.value);
  return agent;
}

}  // namespace belljar::policy
