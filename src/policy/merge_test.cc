#include "policy/merge.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "policy/flags.h"
#include "policy/host_rule.h"
#include "policy/load.h"
#include "policy/parse.h"
#include "policy/preset.h"

namespace belljar::policy {
namespace {

PolicyLayer layer_of(const std::string& toml, const std::string& name = "p.toml") {
  auto layer = parse_policy(toml, name);
  EXPECT_TRUE(layer) << layer.error().message();
  return layer ? *layer : PolicyLayer{};
}

base::Result<Policy> merged(std::vector<PolicyLayer> layers) {
  layers.insert(layers.begin(), built_in_layer());
  return merge(layers);
}

std::vector<std::string> texts(const std::vector<HostRule>& rules) {
  std::vector<std::string> out;
  for (const auto& rule : rules) out.push_back(to_text(rule));
  return out;
}

TEST(BuiltIn, IsSealed) {
  const Policy policy = built_in("claude");
  EXPECT_EQ(policy.isolation.mode, Mode::kJail);
  EXPECT_EQ(policy.isolation.network, Network::kDeny);
  EXPECT_TRUE(policy.isolation.allow_hosts.empty());
  EXPECT_EQ(policy.git, GitAccess::kRead);
  EXPECT_EQ(policy.agent, *find_agent("claude"));
  EXPECT_TRUE(policy.env.allow.empty());
  const auto hosts = texts(reachable_hosts(policy));
  EXPECT_EQ(hosts.front(), "api.anthropic.com");
  EXPECT_EQ(hosts.size(), policy.agent.hosts.size() + policy.agent.registries.size());
  EXPECT_TRUE(reachable_hosts(built_in("")).empty());
  EXPECT_TRUE(built_in("aider").agent.config_dirs.empty());
  EXPECT_EQ(built_in(""), load({}, std::nullopt, {}).value());
}

TEST(Merge, TakesTheLastWordForASingleValue) {
  const auto policy = merged({layer_of("git = \"write\"\nagent = \"claude\"\n[limits]\nwall = 5\npids = 9\n"),
                              layer_of("agent = \"codex\"\n[limits]\nwall = 7", "q.toml")});
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->git, GitAccess::kWrite);
  EXPECT_EQ(policy->limits.wall_seconds, 7U);
  EXPECT_EQ(policy->limits.pids, 9U);
  EXPECT_EQ(policy->agent, *find_agent("codex"));
  EXPECT_EQ(policy->sources.at("limits.wall"), "q.toml:3:8");
  EXPECT_EQ(policy->sources.at("limits.pids"), "p.toml:5:8");
  EXPECT_EQ(policy->sources.at("isolation.mode"), "built-in policy");
}

TEST(Merge, ExtendsListsAndKeepsEachSource) {
  const auto policy =
      merged({layer_of("[isolation]\nallow_hosts = [\"a.test\", \"b.test\"]\n[files]\nread = [\"/a\"]"),
              layer_of("[isolation]\nallow_hosts = [\"B.test.\", \"c.test\"]\n[files]\nread = [\"/b\"]", "q.toml")});
  ASSERT_TRUE(policy);
  EXPECT_EQ(texts(policy->isolation.allow_hosts), (std::vector<std::string>{"a.test", "b.test", "c.test"}));
  EXPECT_EQ(policy->isolation.allow_hosts[1].source, "p.toml:2:26");
  EXPECT_EQ(policy->isolation.allow_hosts[2].source, "q.toml:2:27");
  EXPECT_EQ(policy->files.read, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(policy->sources.at("files.read /b"), "q.toml:4:9");
}

TEST(Merge, LetsTheLaterWordChooseBetweenReadAndWriteAndPassedAndSet) {
  const auto base = layer_of("[files]\nread = [\"/a\"]\nwrite = [\"/b\"]\n[env]\nallow = [\"A\"]\nset = { B = \"1\" }");
  const auto policy = merged(
      {base, layer_of("[files]\nread = [\"/b\"]\nwrite = [\"/a\"]\n[env]\nallow = [\"B\"]\nset = { A = \"2\" }")});
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_EQ(policy->files.read, std::vector<std::string>{"/b"});
  EXPECT_EQ(policy->files.write, std::vector<std::string>{"/a"});
  EXPECT_EQ(policy->env.allow, std::vector<std::string>{"B"});
  EXPECT_EQ(policy->env.set, (std::map<std::string, std::string>{{"A", "2"}}));
}

TEST(Merge, RefusesLayersThatContradictEachOther) {
  FlagOverrides open;
  open.net = "allow";
  FlagOverrides none;
  none.mode = "none";
  FlagOverrides jail;
  jail.mode = "jail";
  FlagOverrides show;
  show.read = {"/secret"};
  struct Case {
    std::string toml;
    FlagOverrides flags;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"[isolation]\nallow_hosts = [\"a.test\"]", open,
       "p.toml:2:16: allow_hosts = \"a.test\" contradicts network = \"allow\" (--net) (deny the network, or leave the "
       "hosts out: nothing holds them back)"},
      {"", none,
       "--mode: mode = \"none\" contradicts network = \"deny\" (built-in policy) (without a boundary nothing is "
       "denied: "
       "say network = \"allow\" (--net allow) as well)"},
      {"[isolation]\nmode = \"docker\"\ndocker_image = \"debian\"", jail,
       "p.toml:3:16: docker_image contradicts mode = \"jail\" (--mode) (only mode = \"docker\" has an image: leave it "
       "out)"},
      {"[isolation]\ndocker_image = \"debian\"",
       {},
       "p.toml:2:16: docker_image contradicts mode = \"jail\" (built-in policy) (only mode = \"docker\" has an image: "
       "leave it out)"},
      {"[files]\nhide = [\"/secret\"]", show,
       "p.toml:2:9: hide = \"/secret\" contradicts the same path under 'read' (--read) (write includes read: name a "
       "path "
       "in one list)"},
  };
  for (const auto& [toml, flags, message] : cases) {
    const auto policy = merged({layer_of(toml), flags_layer(flags).value()});
    ASSERT_FALSE(policy) << message;
    EXPECT_EQ(policy.error().message(), message);
  }
}

// Without a boundary an agent's own sandbox is the only one there is.
TEST(Merge, KeepsTheInnerSandboxOnWithoutABoundary) {
  for (const auto name : agent_names()) {
    const auto open =
        merged({agent_layer(name, "here"), layer_of("[isolation]\nmode = \"none\"\nnetwork = \"allow\"")});
    ASSERT_TRUE(open);
    EXPECT_TRUE(open->agent.extra_arguments.empty());
    EXPECT_FALSE(open->agent.env.contains("IS_SANDBOX"));
    EXPECT_FALSE(open->agent.env.contains("GEMINI_SANDBOX"));
    const auto sealed = merged({agent_layer(name, "here")});
    EXPECT_TRUE(!sealed->agent.extra_arguments.empty() || sealed->agent.env.contains("GEMINI_SANDBOX"));
  }
}

TEST(Merge, EmptiesTheHomeWhenAsked) {
  const auto policy = merged({agent_layer("claude", "here"), layer_of("[files]\nhome = \"empty\"")});
  ASSERT_TRUE(policy);
  const Agent& agent = policy->agent;
  for (const auto* list : {&agent.config_dirs, &agent.config_files, &agent.obeyed, &agent.history, &agent.state_keys}) {
    EXPECT_TRUE(list->empty());
  }
  EXPECT_EQ(agent.state_file, "");
  EXPECT_FALSE(policy->agent.credential_env.empty());
}

TEST(ReachableHosts, AreNoneOfOursWhenTheNetworkIsOpen) {
  const auto policy = merged({agent_layer("claude", "here"), layer_of("[isolation]\nnetwork = \"allow\"")});
  EXPECT_TRUE(reachable_hosts(*policy).empty());
}

TEST(ReachableHosts, NameEachRuleOnce) {
  const auto policy = merged(
      {agent_layer("claude", "here"), layer_of("[isolation]\nallow_hosts = [\"api.anthropic.com\", \"a.test\"]")});
  const auto hosts = reachable_hosts(*policy);
  EXPECT_EQ(hosts.size(), policy->agent.hosts.size() + policy->agent.registries.size() + 1);
  EXPECT_EQ(hosts.front().source, "preset claude");
  EXPECT_EQ(hosts.back().source, "p.toml:2:37");
}

TEST(Flags, AreCheckedLikeAFile) {
  struct Case {
    FlagOverrides flags;
    std::string message;
  };
  const auto with = [](auto member, auto value) {
    FlagOverrides flags;
    flags.*member = value;
    return flags;
  };
  using F = FlagOverrides;
  using List = std::vector<std::string>;
  const std::vector<Case> cases = {
      {with(&F::allow_hosts, List{"x y"}), "--allow-host 'x y': holds a space (write one host per entry)"},
      {with(&F::allow_hosts, List{"https://x/"}),
       "--allow-host 'https://x/': a URL, not a host (write only the host, without scheme and path)"},
      {with(&F::mode, "jial"), "--mode 'jial': unknown value (one of none, jail, bwrap, docker)"},
      {with(&F::net, "den"), "--net 'den': unknown value (did you mean 'deny'? one of allow, deny)"},
      {with(&F::git, ""), "--git: unknown value (one of read, write)"},
      {with(&F::agent, "a/b"),
       "--agent 'a/b': not a name of an agent (lower case letters, digits, '-', '_' and '.', at most 64)"},
      {with(&F::read, List{"a\xff"}),
       "--read 'a\\xff': is not valid UTF-8 (rename it, or name the folder that holds it)"},
      {with(&F::write, List{"/"}), "--write '/': the whole machine (name the folders that are needed)"},
      {with(&F::hide, List{"*.env"}),
       "--hide '*.env': looks like a pattern, and paths are taken as they are (name each file or the folder that holds "
       "them)"},
      {with(&F::env, List{"A B=secret"}),
       "--env 'A B': not a name of a variable (letters, digits and '_', not a digit first)"},
      {with(&F::env, List{"=secret"}), "--env: empty (name a variable, such as EDITOR)"},
      {with(&F::env, List{"A=secret1", "A=secret2"}), "--env 'A': set to two values (give it once)"},
      {with(&F::env, List{"A=\xff"}), "--env 'A': its value is not valid UTF-8 (encode it as text)"},
      {with(&F::env, List{"A", "A=secret"}),
       "--env: env.allow = \"A\" contradicts env.set.A (--env) (pass the launcher's value or set one, not both)"},
      {with(&F::timeout, "soon"),
       "--timeout 'soon': not a duration (write whole numbers and d, h, m or s, such as 2h or 1h30m)"},
      {with(&F::memory, "2G"),
       "--memory '2G': not a size (write a whole number and B, KiB, MiB, GiB or TiB, such as 2GiB)"},
      {with(&F::memory, "1"), "--memory '1': out of range (from 16MiB to 1024TiB)"},
      {with(&F::cpu, "0"), "--cpu '0': out of range (from 1% to 1000000%)"},
      {with(&F::pids, "many"), "--pids 'many': not a whole number (write digits only)"},
      {with(&F::timeout, "0"), "--timeout '0': out of range (from 1s to 366d)"},
  };
  for (const auto& [flags, message] : cases) {
    const auto layer = flags_layer(flags);
    ASSERT_FALSE(layer) << message;
    EXPECT_EQ(layer.error().message(), message);
  }
}

TEST(Flags, SayWhatTheirWordsSay) {
  FlagOverrides flags;
  flags.agent = "codex";
  flags.mode = "bwrap";
  flags.net = "deny";
  flags.git = "write";
  flags.timeout = "90";
  flags.memory = "2GiB";
  flags.cpu = "150%";
  flags.pids = "500";
  flags.allow_hosts = {"A.test", "a.test."};
  flags.read = {"data/", "./data", "/x//y"};
  flags.env = {"EDITOR", "EDITOR", "A=b=c", "A=b=c", "EMPTY="};
  const auto policy = load({}, std::nullopt, flags);
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_EQ(policy->agent, *find_agent("codex"));
  EXPECT_EQ(policy->isolation.mode, Mode::kBwrap);
  EXPECT_EQ(policy->git, GitAccess::kWrite);
  EXPECT_EQ(policy->limits.wall_seconds, 90U);
  EXPECT_EQ(policy->limits.memory_bytes, uint64_t{2} << 30U);
  EXPECT_EQ(policy->limits.cpu_percent, 150U);
  EXPECT_EQ(policy->limits.pids, 500U);
  EXPECT_EQ(texts(policy->isolation.allow_hosts), std::vector<std::string>{"a.test"});
  EXPECT_EQ(policy->isolation.allow_hosts.front().source, "--allow-host");
  EXPECT_EQ(policy->files.read, (std::vector<std::string>{"./data", "/x/y"}));
  EXPECT_EQ(policy->env.allow, std::vector<std::string>{"EDITOR"});
  EXPECT_EQ(policy->env.set, (std::map<std::string, std::string>{{"A", "b=c"}, {"EMPTY", ""}}));
}

TEST(MergeHosts, ALaterLayerReplacesTheRuleForTheSameHostAndPorts) {
  const auto policy =
      merged({layer_of("[isolation]\nallow_hosts = [\"a.test\", {host = \"b.test\", max_bytes = 1}]"),
              layer_of("[isolation]\nallow_hosts = [{host = \"a.test\", methods = [\"GET\"]}, \"b.test\"]", "q.toml")});
  ASSERT_TRUE(policy) << policy.error().message();
  const auto& rules = policy->isolation.allow_hosts;
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].methods, std::vector<std::string>{"GET"});
  EXPECT_FALSE(rules[1].max_bytes);
}

TEST(SessionRules, HaveIdsOfTheirOwnAndDenyFirst) {
  const auto policy = merged({layer_of(
      "[isolation]\nallow_hosts = [{host = \"a.test\", methods = [\"GET\"]}, {host = \"a.test\", methods = [\"POST\"], "
      "paths = [\"/x\"]}]\ndeny_hosts = [\"b.test\"]\nhost_ports = [5432]")});
  ASSERT_TRUE(policy) << policy.error().message();
  std::vector<std::string> ids;
  for (const HostRule& rule : session_rules(*policy)) ids.push_back(rule.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"deny:b.test", "allow:a.test", "allow:a.test#2", "host_port:5432"}));
}

}  // namespace
}  // namespace belljar::policy
