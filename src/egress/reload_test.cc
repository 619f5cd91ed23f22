// Rules that change while the proxy runs: what is still allowed lives on, and what is not is cut
// (shared/cases/egress.md, E17).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <string>

#include "base/pack.h"
#include "egress/rule_feed.h"
#include "egress/test_world.h"
#include "net/hello_bytes.h"
#include "net/socks.h"

namespace belljar::egress {
namespace {

using net::testing::hello_for;
using net::testing::server_hello;
using testing::echo;
using ::testing::HasSubstr;
using testing::Peer;
using ::testing::StartsWith;
using testing::Upstream;
using testing::World;

// The two ends of the file by which rules come.
class Door {
 public:
  explicit Door(World& world) {
    std::string path = std::filesystem::temp_directory_path() / "belljar-rules.XXXXXX";
    file_ = base::Fd(::mkstemp(path.data()));
    path_ = path;
    auto ours = std::make_shared<base::Fd>(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    auto notices = std::make_shared<base::Fd>(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    EXPECT_GE(::inotify_add_watch(notices->get(), path.c_str(), IN_CLOSE_WRITE), 0);
    watch_ = base::Fd(::inotify_init1(IN_CLOEXEC));
    EXPECT_GE(::inotify_add_watch(watch_.get(), path.c_str(), IN_MODIFY), 0);
    world.options.rule_file = std::move(ours);
    world.options.rule_notices = std::move(notices);
  }
  ~Door() { ::unlink(path_.c_str()); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // The proxy's answer to `bytes`.
  std::string send(const std::string& bytes) {
    {
      const base::Fd writer(::open(path_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
      EXPECT_TRUE(base::write_all(writer.get(), bytes));
    }
    for (int i = 0; i < 100; ++i) {
      std::string text(4096, '\0');
      const ssize_t n = ::pread(file_.get(), text.data(), text.size(), 0);
      text.resize(n > 0 ? static_cast<size_t>(n) : 0);
      if (text.ends_with('\n') && text != bytes) return text;
      pollfd wait{watch_.get(), POLLIN, 0};
      if (::poll(&wait, 1, 10'000) != 1) return "no answer";
      char notice[4096];
      (void)!::read(watch_.get(), notice, sizeof notice);
    }
    return "no answer";
  }
  std::string rules(const std::vector<std::string>& allow, const std::vector<std::string>& deny = {}) {
    RuleUpdate update;
    for (const std::string& text : deny) update.rules.push_back(*policy::parse_deny_rule(text, "new"));
    for (const std::string& text : allow) update.rules.push_back(*policy::parse_host_rule(text, "new"));
    return send(encode(update));
  }

 private:
  base::Fd file_;
  base::Fd watch_;
  std::string path_;
};

// A guest whose tunnel is known to work.
Peer open_tunnel(World& world, const std::string& host, const Upstream& upstream) {
  Peer peer = world.tunnel(upstream.at(host));
  const std::string hello = hello_for(host);
  EXPECT_TRUE(peer.send(hello));
  EXPECT_EQ(peer.read(server_hello().size() + hello.size()), server_hello() + hello);
  return peer;
}

bool lives(Peer& peer) {
  return peer.send("x") && peer.read(1) == "x";
}

TEST(Reload, CutsWhatIsNoLongerAllowedAndNothingElse) {
  const Upstream upstream(echo);
  World world;
  Door door(world);
  world.allow_upstream("stays.example", upstream);
  world.allow_upstream("goes.example", upstream);
  world.start();
  Peer stays = open_tunnel(world, "stays.example", upstream);
  Peer goes = open_tunnel(world, "goes.example", upstream);
  EXPECT_EQ(door.rules({upstream.at("stays.example")}), "taken 1\n");
  EXPECT_TRUE(lives(stays));
  EXPECT_EQ(goes.read_all(), "");
  EXPECT_EQ(goes.error(), ECONNRESET);
  Peer again = world.guest();
  ASSERT_TRUE(again.send("CONNECT " + upstream.at("goes.example") +
                         " HTTP/1.1\r\nHost: " + upstream.at("goes.example") + "\r\n\r\n"));
  EXPECT_THAT(again.read_all(), HasSubstr("host_not_allowed"));
  const auto denials = world.denials();
  ASSERT_EQ(denials.size(), 1U);
  EXPECT_EQ(denials[0].detail, "the rules have changed");
  EXPECT_EQ(denials[0].count, 2U);
}

TEST(Reload, LetsInWhatIsNewlyAllowed) {
  const Upstream upstream(echo);
  World world;
  Door door(world);
  world.name("new.example", {"127.0.0.1"});
  world.start();
  EXPECT_EQ(door.rules({upstream.at("new.example")}), "taken 0\n");
  Peer peer = open_tunnel(world, "new.example", upstream);
  EXPECT_TRUE(lives(peer));
}

TEST(Reload, ADenialCutsByNameByAliasAndByAddress) {
  const Upstream upstream(echo);
  World world;
  Door door(world);
  for (const char* host : {"name.example", "alias.example", "address.example", "stays.example"}) {
    world.allow(upstream.at(host));
    world.name(host, {"127.0.0.1"});
  }
  world.table.answers["alias.example"].front().aliases = {"real.example"};
  world.start();
  Peer name = open_tunnel(world, "name.example", upstream);
  Peer alias = open_tunnel(world, "alias.example", upstream);
  Peer stays = open_tunnel(world, "stays.example", upstream);
  const std::string all = "*.example:" + std::to_string(upstream.port());
  EXPECT_EQ(door.rules({all}, {"name.example", "real.example"}), "taken 2\n");
  EXPECT_EQ(name.read_all(), "");
  EXPECT_EQ(alias.read_all(), "");
  EXPECT_TRUE(lives(stays));
  EXPECT_EQ(door.rules({all}, {"127.0.0.1"}), "taken 1\n");
  EXPECT_EQ(stays.read_all(), "");
}

TEST(Reload, WhatNobodyHasReadEndsWithTheRuleForAnyProtocol) {
  const Upstream upstream([](Peer& peer) {
    if (peer.send("hello first\n")) echo(peer);
  });
  World world;
  Door door(world);
  world.allow_upstream("any.example", upstream);
  world.options.rules.front().tls = policy::Tls::kAny;
  world.start();
  Peer peer = world.tunnel(upstream.at("any.example"));
  EXPECT_EQ(peer.read_until("\n"), "hello first\n");
  EXPECT_EQ(door.rules({upstream.at("any.example")}), "taken 1\n");
  EXPECT_EQ(peer.read_all(), "");
}

TEST(Reload, CutsEveryKindOfConnection) {
  const Upstream silent([](Peer& peer) { peer.read_all(); });
  const Upstream slow([](Peer& peer) {
    peer.read_head();
    if (peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun")) peer.read_all();
  });
  World world;
  Door door(world);
  world.allow_upstream("silent.example", silent);
  world.allow_upstream("slow.example", slow);
  world.start();
  const std::string silent_host = silent.at("silent.example");
  // A tunnel whose hello was not yet sent, one whose server has not answered the hello, SOCKS, and a plain exchange.
  Peer no_hello = world.tunnel(silent_host);
  Peer no_answer = world.tunnel(silent_host);
  ASSERT_TRUE(no_answer.send(hello_for("silent.example")));
  Peer socks = world.guest();
  const std::string name = "silent.example";
  std::string request("\x05\x01\x00\x05\x01\x00\x03", 7);
  request += static_cast<char>(name.size());
  request += name;
  request += static_cast<char>(silent.port() >> 8U);
  request += static_cast<char>(silent.port() & 0xffU);
  ASSERT_TRUE(socks.send(request));
  ASSERT_EQ(socks.read(12).size(), 12U);
  Peer plain = world.guest();
  ASSERT_TRUE(plain.send("GET http://" + slow.at("slow.example") + "/ HTTP/1.1\r\nHost: " + slow.at("slow.example") +
                         "\r\n\r\n"));
  EXPECT_THAT(plain.read_until("begun"), HasSubstr("200 OK"));
  EXPECT_EQ(door.rules({}), "taken 4\n");
  for (Peer* peer : {&no_hello, &no_answer, &socks, &plain}) {
    peer->read_all();
    EXPECT_EQ(peer->error(), ECONNRESET);
  }
}

TEST(Reload, AKeptAliveConnectionIsJudgedByTheNewRules) {
  const Upstream upstream([](Peer& peer) {
    peer.read_head();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  World world;
  Door door(world);
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.guest();
  const std::string request =
      "GET http://" + upstream.at("ok.example") + "/ HTTP/1.1\r\nHost: " + upstream.at("ok.example") + "\r\n\r\n";
  ASSERT_TRUE(peer.send(request));
  EXPECT_THAT(peer.read_until("ok"), HasSubstr("200 OK"));
  EXPECT_EQ(door.rules({}), "taken 0\n");
  ASSERT_TRUE(peer.send(request));
  EXPECT_THAT(peer.read_all(), HasSubstr("host_not_allowed"));
}

TEST(Reload, ANarrowerCapKeepsAsManyAsItAllows) {
  const Upstream upstream(echo);
  World world;
  Door door(world);
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer one = open_tunnel(world, "ok.example", upstream);
  Peer two = open_tunnel(world, "ok.example", upstream);
  RuleUpdate update{{*policy::parse_host_rule(upstream.at("ok.example"), "new")}, {}};
  update.rules.front().max_connections = 1;
  EXPECT_EQ(door.send(encode(update)), "taken 1\n");
  EXPECT_NE(lives(one), lives(two));
}

TEST(Reload, RefusesWhatItsLauncherCouldNotReachAndChangesNothing) {
  const Upstream upstream(echo);
  World world;
  Door door(world);
  world.options.may_bring = [](const policy::HostRule& rule) { return rule.port != 1; };
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = open_tunnel(world, "ok.example", upstream);
  EXPECT_THAT(door.rules({"ok.example:1"}),
              HasSubstr("refused take the rules 'ok.example:1': this session's launcher"));
  EXPECT_TRUE(lives(peer));
}

TEST(Reload, WhatIsNotWholeChangesNothing) {
  const Upstream upstream(echo);
  World world;
  Door door(world);
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = open_tunnel(world, "ok.example", upstream);
  const std::string whole = encode(RuleUpdate{{*policy::parse_host_rule("x.example", "new")}, "192.0.2.1"});
  for (const std::string& bytes : {std::string("rubbish"), whole.substr(0, whole.size() - 1), whole + "x",
                                   std::string(64, '\xff'), whole.substr(0, 16) + std::string(8, '\x7f')}) {
    EXPECT_THAT(door.send(bytes), StartsWith("refused read the rules")) << bytes.size();
    EXPECT_TRUE(lives(peer));
  }
  const auto back = decode_rules(whole);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->rules.front(), *policy::parse_host_rule("x.example", ""));
  EXPECT_EQ(back->name_servers, "192.0.2.1");
}

// Each rule comes back as it was, whatever it says.
TEST(RuleUpdate, IsReadBackWhole) {
  policy::HostRule rule = *policy::parse_host_rule("*.a.example:*", "FILE:1:2");
  rule.ports = {1, 65535};
  rule.deny = rule.host_port = rule.hook = true;
  rule.tls = policy::Tls::kAny;
  rule.methods = {"GET", ""};
  rule.paths = {"/x"};
  rule.max_connections = 0;
  rule.max_bytes = UINT64_MAX;
  rule.id = "allow:x";
  const auto back = decode_rules(encode({{rule}, {}}));
  ASSERT_TRUE(back && back->rules.size() == 1);
  EXPECT_EQ(back->rules[0], rule);
  EXPECT_EQ(back->rules[0].id, rule.id);
  EXPECT_EQ(back->rules[0].source, rule.source);
}

}  // namespace
}  // namespace belljar::egress
