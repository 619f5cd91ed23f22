// Each rule in a real proxy: what it lets through and what it does not.
#include "egress/rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "egress/test_world.h"
#include "net/hello_bytes.h"
#include "policy/parse.h"

namespace belljar::egress {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

// The rules of `allow_hosts = [ENTRIES]` and the like, as the policy's own parser makes them.
std::vector<policy::HostRule> rules_of(const std::string& isolation) {
  auto layer = policy::parse_policy("[isolation]\n" + isolation, "p.toml");
  EXPECT_TRUE(layer) << layer.error().message();
  std::vector<policy::HostRule> out = layer->deny_hosts;
  out.insert(out.end(), layer->allow_hosts.begin(), layer->allow_hosts.end());
  out.insert(out.end(), layer->host_ports.begin(), layer->host_ports.end());
  policy::give_ids(out);
  return out;
}

std::string code(const Rules& rules, const Request& request) {
  const Verdict verdict = rules.decide(request);
  return verdict.allowed ? verdict.rule->id : std::string(code_of(verdict.reason));
}

TEST(RulesDecide, DenyWinsWhateverAllows) {
  const Rules rules(
      rules_of("allow_hosts = [\"*.example.com:*\", \"example.com\", \"10.0.0.0/8:*\"]\n"
               "deny_hosts = [\"bad.example.com\", \"*.bad.example.com\", \"example.com:80\", \"10.9.0.0/16\"]"));
  EXPECT_EQ(code(rules, {"good.example.com", 443}), "allow:*.example.com:*");
  EXPECT_EQ(code(rules, {"bad.example.com", 443}), "host_denied");
  EXPECT_EQ(code(rules, {"bad.example.com", 9999}), "host_denied");
  EXPECT_EQ(code(rules, {"x.bad.example.com", 443}), "host_denied");
  EXPECT_EQ(code(rules, {"example.com", 80}), "host_denied");
  EXPECT_EQ(code(rules, {"example.com", 443}), "allow:example.com");
  EXPECT_EQ(code(rules, {"10.1.2.3", 22}), "allow:10.0.0.0/8:*");
  EXPECT_EQ(code(rules, {"10.9.2.3", 22}), "host_denied");
  EXPECT_EQ(text_of(rules.decide("bad.example.com", 443).rule), "bad.example.com (p.toml:3:15)");
}

TEST(RulesDecide, OptionsCountBeforeRulesWithout) {
  const Rules rules(rules_of(
      "allow_hosts = [\"*.a.test\", {host = \"x.a.test\", methods = [\"GET\"]}, {host = \"x.a.test\", methods = "
      "[\"POST\"], "
      "paths = [\"/up\"]}, {host = \"t.test\", tls = \"required\"}, {host = \"p.test\", ports = [8080, 9090]}]"));
  EXPECT_EQ(code(rules, {"y.a.test", 443, Doing::kTunnel}), "allow:*.a.test");
  EXPECT_EQ(code(rules, {"x.a.test", 443, Doing::kTunnel}), "plain_http_only");
  EXPECT_EQ(code(rules, {"x.a.test", 80}), "allow:x.a.test") << "a request may still come";
  EXPECT_EQ(code(rules, {"x.a.test", 80, Doing::kPlain, "GET", "/"}), "allow:x.a.test");
  EXPECT_EQ(code(rules, {"x.a.test", 80, Doing::kPlain, "POST", "/up/1?q"}), "allow:x.a.test#2");
  EXPECT_EQ(code(rules, {"x.a.test", 80, Doing::kPlain, "POST", "/upper"}), "method_not_allowed");
  EXPECT_EQ(code(rules, {"x.a.test", 80, Doing::kPlain, "get", "/"}), "method_not_allowed");
  EXPECT_EQ(code(rules, {"t.test", 80, Doing::kPlain, "GET", "/"}), "tls_required");
  EXPECT_EQ(code(rules, {"t.test", 443, Doing::kTunnel}), "allow:t.test");
  EXPECT_EQ(code(rules, {"p.test", 9090, Doing::kTunnel}), "allow:p.test:8080,9090");
  EXPECT_EQ(code(rules, {"p.test", 80, Doing::kTunnel}), "port_not_allowed");
}

TEST(RulesDecide, APathHasOneMeaningOrIsNotBelow) {
  const std::vector<std::string> prefixes = {"/v1", "/files/"};
  for (const char* good :
       {"/v1", "/v1/", "/v1/a/b?x=/../", "/files/a", "/v1/a%20b", "/v1/%E0", "/v1/%c3%a4", "/v1?x"}) {
    EXPECT_TRUE(is_below(good, prefixes)) << good;
  }
  for (const char* bad : {"/v10",
                          "/",
                          "*",
                          "",
                          "/files",
                          "/v1/../x",
                          "/v1/./x",
                          "/v1/%2e%2E/x",
                          "/v1/..%2fx",
                          "/v1/%c0%ae%C0%AE/x",
                          "/v1/%u002e%u002e/x",
                          "/v1/%e0%80%ae/x",
                          "/v1/%f0%80%80%af",
                          "/v1/%g0",
                          "/v1//x",
                          "/v1/..;/x",
                          "/v1/.;a/x",
                          "/v1\\..\\x",
                          "/%761",
                          "/v1/%5cx",
                          "/v1/%252e",
                          "/v1/..%3b/x",
                          "/v1/x%0d%0aHost:%20y",
                          "/v1/%7f",
                          "/v1/%ef%bc%8e%EF%BC%8e/x",
                          "/v1/%2",
                          "/v1/%00"}) {
    EXPECT_FALSE(is_below(bad, prefixes)) << bad;
  }
}

TEST(RulesDecide, NewRulesKeepWhatOldOnesHaveBeenUsedFor) {
  Rules rules(rules_of("allow_hosts = [{host = \"a.test\", max_bytes = 10}, \"b.test\"]"));
  const RulePtr old = rules.decide("a.test", 443).rule;
  old->bytes = 10;
  rules.replace(rules_of("allow_hosts = [\"c.test\", {host = \"a.test\", max_bytes = 10}]"));
  EXPECT_EQ(rules.decide("a.test", 443).rule, old);
  EXPECT_EQ(code(rules, {"b.test", 443}), "host_not_allowed");
  EXPECT_EQ(code(rules, {"c.test", 443}), "allow:c.test");
}

TEST(RuleLimits, RequestsRefillEvenly) {
  Rule rule(rules_of("allow_hosts = [{host = \"a.test\", requests_per_minute = 2}]").front());
  const auto at = [](int seconds) { return std::chrono::nanoseconds(std::chrono::seconds(1000 + seconds)); };
  EXPECT_FALSE(take_request(rule, at(0)));
  EXPECT_FALSE(take_request(rule, at(0)));
  EXPECT_EQ(take_request(rule, at(1)), Reason::kRuleRate);
  EXPECT_FALSE(take_request(rule, at(31)));
  EXPECT_EQ(take_request(rule, at(32)), Reason::kRuleRate);
  EXPECT_FALSE(take_request(rule, at(4000)));
  EXPECT_FALSE(take_request(rule, at(4000)));
  EXPECT_EQ(take_request(rule, at(4000)), Reason::kRuleRate) << "no more than a minute's worth is saved up";
}

// A guest whose policy says `isolation`, with `%P` for the upstream's port.
class RuleWorld : public World {
 public:
  RuleWorld(std::string isolation, const Upstream& upstream) {
    for (size_t at = isolation.find("%P"); at != std::string::npos; at = isolation.find("%P")) {
      isolation.replace(at, 2, std::to_string(upstream.port()));
    }
    options.rules = rules_of(isolation);
    name("a.test", {"127.0.0.1"});
    authority = "a.test:" + std::to_string(upstream.port());
    start();
  }
  // The head of the answer to one plain request on a connection of its own.
  [[nodiscard]] std::string ask(const std::string& method, const std::string& path) const {
    Peer peer = guest();
    EXPECT_TRUE(peer.send(method + " http://" + authority + path + " HTTP/1.1\r\nHost: " + authority +
                          "\r\nConnection: close\r\n\r\n"));
    return peer.read_all();
  }
  [[nodiscard]] std::string connect(const std::string& to) const {
    Peer peer = guest();
    EXPECT_TRUE(peer.send("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n"));
    return peer.read_head();
  }
  std::string authority;
};

void answer_http(Peer& peer) {
  peer.read_head();
  peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
}

TEST(RuleOptions, MethodAndPathAreHeldForEveryPlainRequest) {
  Upstream upstream(answer_http);
  RuleWorld world("allow_hosts = [{host = \"a.test:%P\", methods = [\"GET\"], paths = [\"/v1\"]}]", upstream);
  EXPECT_TRUE(world.ask("GET", "/v1/x").starts_with("HTTP/1.1 200"));
  const std::string refused = world.ask("POST", "/v1/x");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 403 Forbidden (belljar: method_not_allowed)"));
  EXPECT_TRUE(refused.contains("p.toml:2:16")) << "the rule and its source: " << refused;
  EXPECT_TRUE(world.ask("GET", "/v2").contains("path_not_allowed"));
  EXPECT_TRUE(world.ask("GET", "/v1/%2e%2e/v2").contains("path_not_allowed"));
  for (const char* field : {"X-HTTP-Method-Override: DELETE", "X-Original-URL: /v2", "x-rewrite-url: /v2"}) {
    EXPECT_TRUE(world.ask("GET", std::string("/v1/x HTTP/1.1\r\n") + field + "\r\nA: b").starts_with("HTTP/1.1 400"))
        << field;
  }
  EXPECT_TRUE(world.connect(world.authority).contains("plain_http_only"));
  EXPECT_EQ(upstream.connections(), 1);
}

TEST(RuleOptions, TlsRequiredForwardsNoPlainRequest) {
  Upstream upstream(answer_http);
  RuleWorld world("allow_hosts = [{host = \"a.test:%P\", tls = \"required\"}]", upstream);
  EXPECT_TRUE(world.ask("GET", "/").contains("tls_required"));
  EXPECT_TRUE(world.connect(world.authority).starts_with("HTTP/1.1 200"));
}

TEST(RuleOptions, TlsAnyLetsAServerSpeakFirst) {
  Upstream upstream([](Peer& peer) {
    peer.send("SSH-2.0-x\r\n");
    peer.send(peer.read_until("\n"));
  });
  RuleWorld world("allow_hosts = [{host = \"a.test:%P\", tls = \"any\"}]", upstream);
  Peer peer = world.tunnel(world.authority);
  EXPECT_EQ(peer.read_until("\n"), "SSH-2.0-x\r\n");
  ASSERT_TRUE(peer.send("hello\n"));
  EXPECT_EQ(peer.read_until("\n"), "hello\n");
  peer.close();
  world.stop();
  ASSERT_EQ(world.proxy->uses().size(), 1U);
  const Use use = world.proxy->uses().front();
  EXPECT_EQ(use.rule_id, "allow:" + world.authority);
  EXPECT_EQ(use.up, 6U);
  EXPECT_EQ(use.down, 17U);
}

TEST(RuleOptions, ConnectionsAreCappedWhileTheyAreOpen) {
  Upstream upstream([](Peer& peer) { peer.read_all(); });
  RuleWorld world("allow_hosts = [{host = \"a.test:%P\", tls = \"any\", max_connections = 2}]", upstream);
  Peer first = world.tunnel(world.authority);
  Peer second = world.tunnel(world.authority);
  EXPECT_TRUE(
      world.connect(world.authority).starts_with("HTTP/1.1 503 Service Unavailable (belljar: rule_connections)"));
  first.end_writing();
  EXPECT_EQ(first.read_all(), "");  // over, both ways
  Peer third = world.tunnel(world.authority);
}

TEST(RuleOptions, BytesAreCappedOverTheSessionAndCutWhatIsOpen) {
  Upstream upstream([](Peer& peer) {
    peer.send(std::string(1000, 'x'));
    peer.read_all();
  });
  RuleWorld world("allow_hosts = [{host = \"a.test:%P\", tls = \"any\", max_bytes = 2500}]", upstream);
  Peer first = world.tunnel(world.authority);
  EXPECT_EQ(first.read(1000).size(), 1000U);
  Peer second = world.tunnel(world.authority);
  EXPECT_EQ(second.read(1000).size(), 1000U);
  ASSERT_TRUE(first.send(std::string(600, 'y')));
  EXPECT_EQ(first.read_all(), "");
  EXPECT_EQ(first.error(), ECONNRESET);
  EXPECT_TRUE(world.connect(world.authority).contains("(belljar: rule_bytes)"));
  const auto denials = world.denials();
  ASSERT_EQ(denials.size(), 1U);
  EXPECT_EQ(denials.front().count, 2U);
}

TEST(RuleOptions, RequestsAMinuteAreAnsweredWith429) {
  Upstream upstream(answer_http);
  RuleWorld world("allow_hosts = [{host = \"a.test:%P\", requests_per_minute = 1}]", upstream);
  EXPECT_TRUE(world.ask("GET", "/").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(world.ask("GET", "/").starts_with("HTTP/1.1 429 Too Many Requests (belljar: rule_rate)"));
}

TEST(RuleAddresses, ADeniedAddressIsNotDialledHoweverItsNameIsAllowed) {
  Upstream upstream(answer_http);
  RuleWorld world("allow_hosts = [\"a.test:%P\"]\ndeny_hosts = [\"127.0.0.0/8\"]", upstream);
  EXPECT_TRUE(world.ask("GET", "/").contains("address_denied"));
  EXPECT_EQ(upstream.connections(), 0);
}

TEST(RuleAddresses, AnAliasOfADeniedNameIsDenied) {
  Upstream upstream(answer_http);
  RuleWorld world("allow_hosts = [\"a.test:%P\", \"b.test:%P\"]\ndeny_hosts = [\"evil.test\"]", upstream);
  {
    const std::lock_guard lock(world.table.mutex);
    world.table.answers["a.test"].front().aliases = {"cdn.test", "evil.test"};
    world.table.answers["a.test"].front().ttl = std::chrono::seconds(600);
  }
  for (const char* answered : {"anew", "from what is known"}) {
    const std::string answer = world.ask("GET", "/");
    EXPECT_TRUE(answer.contains("host_denied")) << answered << answer;
    EXPECT_TRUE(answer.contains("it is an alias of 'evil.test', which is denied: evil.test (p.toml:3:15)")) << answer;
  }
  EXPECT_EQ(world.table.asked.size(), 1U);
  EXPECT_EQ(upstream.connections(), 0);
}

// A remembered answer is judged like a fresh one.
TEST(RuleAddresses, AnAliasStaysDeniedWhenTheAnswerIsRemembered) {
  Upstream upstream(answer_http);
  RuleWorld world("allow_hosts = [\"a.test:%P\", \"b.test:%P\"]\ndeny_hosts = [\"evil.test\"]", upstream);
  {
    const std::lock_guard lock(world.table.mutex);
    world.table.answers["a.test"].front().aliases = {"evil.test"};
    world.table.answers["a.test"].front().ttl = std::chrono::seconds(60);
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(world.ask("GET", "/").contains("host_denied"));
  const std::lock_guard lock(world.table.mutex);
  EXPECT_EQ(world.table.asked, std::vector<std::string>{"a.test"});
  EXPECT_EQ(upstream.connections(), 0);
}

// E10 of shared/cases/egress.md.
TEST(RuleAddresses, OfThreeHundredAddressesOnlyTheCheckedOneIsDialled) {
  Upstream upstream(answer_http);
  RuleWorld world("allow_hosts = [\"a.test:%P\", \"many.test:%P\"]", upstream);
  std::vector<std::string> many;
  for (int i = 0; i < 299; ++i) many.push_back("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1));
  many.emplace_back("127.0.0.1");
  {
    const std::lock_guard lock(world.table.mutex);
    world.table.answers["many.test"] = {testing::addresses(many), testing::addresses({"10.0.0.1"})};
  }
  world.authority = "many.test:" + std::to_string(upstream.port());
  EXPECT_TRUE(world.ask("GET", "/").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(world.ask("GET", "/").contains("address_not_public")) << "rebound: the second answer is checked as well";
  EXPECT_EQ(upstream.connections(), 1);
}

// With the checks of production: the host's loopback is reached by the granted port and by nothing else.
TEST(HostPorts, OpenOnePortOfTheHostsLoopbackAndNoOther) {
  Upstream granted(answer_http);
  Upstream other(answer_http);
  World world;
  world.options.addresses = {};
  world.options.rules = rules_of("host_ports = [" + std::to_string(granted.port()) +
                                 "]\nallow_hosts = [\"name.test:*\", \"127.0.0.1:*\"]");
  world.name("name.test", {"127.0.0.1"});
  world.name(policy::kHostName, {"127.0.0.1"});
  world.start();
  const auto ask = [&](const std::string& host, const Upstream& upstream) {
    const std::string authority = host + ":" + std::to_string(upstream.port());
    Peer peer = world.guest();
    EXPECT_TRUE(peer.send("GET http://" + authority + "/ HTTP/1.1\r\nHost: " + authority + "\r\n\r\n"));
    return peer.read_head();
  };
  EXPECT_TRUE(ask(policy::kHostName, granted).starts_with("HTTP/1.1 200"));
  const std::string refused = ask(policy::kHostName, other);
  EXPECT_TRUE(refused.contains("port_not_allowed, allow with --host-port " + std::to_string(other.port()))) << refused;
  EXPECT_TRUE(ask("127.0.0.1", granted).contains("address_not_public"));
  EXPECT_TRUE(ask("name.test", granted).contains("address_not_public"));
  EXPECT_EQ(granted.connections(), 1);
  EXPECT_EQ(other.connections(), 0);
  EXPECT_EQ(world.table.asked, std::vector<std::string>{"name.test"}) << "the host's own name is never looked up";
}

}  // namespace
}  // namespace belljar::egress
