#include <utility>

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

// No path in two lists, and none below a folder that is writable as a whole: one of the two would mean nothing.
class HomeFiles {
 public:
  explicit HomeFiles(const Section& table) : table_(table) {}

  base::Status take(std::string_view key, std::vector<std::string>& into) {
    BELLJAR_ASSIGN(auto entries, table_.list(key, parse_home_path));
    for (auto& [path, source] : entries) {
      BELLJAR_TRY(claim(key, path, source));
      into.push_back(std::move(path));
    }
    return {};
  }
  base::Status claim(std::string_view key, const std::string& path, const std::string& source) {
    for (const auto& [other, its_key] : claimed_) {
      if (other != path && !(its_key == "config_dirs" && path.starts_with(other + "/"))) continue;
      return base::refuse(
          source + ": agent." + std::string(key), path,
          (other == path ? "is also in agent." : "lies in '" + other + "' of agent.") + std::string(its_key),
          other == path ? "name it in one of them" : "name the parts of that folder one by one");
    }
    claimed_.emplace_back(path, key);
    return {};
  }

 private:
  const Section& table_;
  std::vector<std::pair<std::string, std::string_view>> claimed_;
};

base::Status parse_home_files(const Section& table, Agent& agent) {
  HomeFiles files(table);
  BELLJAR_TRY(files.take("config_dirs", agent.config_dirs));
  BELLJAR_TRY(files.take("config_files", agent.config_files));
  BELLJAR_TRY(files.take("obeyed", agent.obeyed));
  BELLJAR_TRY(files.take("history", agent.history));
  const Node* state = table.find("state_file");
  const Node* keys = table.find("state_keys");
  if (state != nullptr) {
    BELLJAR_ASSIGN(agent.state_file, table.text(*state, "state_file", parse_home_path));
    BELLJAR_TRY(files.claim("state_file", agent.state_file, table.place_of(state->at)));
  }
  BELLJAR_ASSIGN(agent.state_keys, table.plain_list("state_keys", parse_argument));
  if (state == nullptr && keys != nullptr) {
    return table.refuse(*keys, "state_keys", "", {"there is no state_file that they are of", "add state_file = \"…\""});
  }
  return {};
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
  BELLJAR_TRY(table.check_keys({"name", "commands", "config_dirs", "config_files", "obeyed", "history", "state_file",
                                "state_keys", "credential_env", "hosts", "registries", "env", "extra_arguments"}));
  const Node* name = table.find("name");
  if (name == nullptr) {
    return top.refuse(node, "agent", "", {"has no name", "add name = \"…\""});
  }
  Agent agent;
  BELLJAR_ASSIGN(agent.name, table.text(*name, "name", parse_agent_name));
  BELLJAR_ASSIGN(agent.commands, table.plain_list("commands", parse_command_name));
  BELLJAR_TRY(parse_home_files(table, agent));
  BELLJAR_ASSIGN(agent.credential_env, table.plain_list("credential_env", parse_env_name));
  BELLJAR_ASSIGN(agent.hosts, table.plain_list("hosts", host_text));
  BELLJAR_ASSIGN(agent.registries, table.plain_list("registries", host_text));
  BELLJAR_ASSIGN(agent.extra_arguments, table.plain_list("extra_arguments", parse_argument, true));
  BELLJAR_ASSIGN(auto env, table.variables("env"));
  for (auto& [variable, said] : env) agent.env[variable] = std::move(said.value);
  return agent;
}

}  // namespace belljar::policy
