// Hosts that are reached by way of another proxy: shared/cases/egress.md, E16.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>

#include "egress/test_world.h"
#include "net/hello_bytes.h"

namespace belljar::egress {
namespace {

using net::testing::hello_for;
using net::testing::server_hello;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Peer;
using testing::Upstream;
using testing::World;

// A proxy that keeps the heads it got and answers as it is told; a tunnel echoes.
class Corporate {
  std::string answer_;
  std::string heads_;
  std::mutex mutex_;

 public:
  explicit Corporate(std::string answer) : answer_(std::move(answer)) {}
  std::string heads() {
    const std::lock_guard lock(mutex_);
    return heads_;
  }
  // Last, so that it ends first: its threads use what is above.
  Upstream upstream{[this](Peer& peer) {
    const std::string head = peer.read_head();
    {
      const std::lock_guard lock(mutex_);
      heads_ += head;
    }
    if (peer.send(answer_)) testing::echo(peer);
  }};
};

class UpstreamProxyTest : public ::testing::Test {
 protected:
  void start(Corporate& corporate) {
    world.options.upstream =
        UpstreamProxy{"127.0.0.1", corporate.upstream.port(), "Basic c2VjcmV0", {"direct.example"}};
    world.start();
  }
  World world;
};

TEST_F(UpstreamProxyTest, CarriesATunnelWithItsCredentialsAndLooksNothingUp) {
  Corporate corporate("HTTP/1.1 200 OK\r\n\r\n");
  world.allow("far.example");
  start(corporate);
  Peer peer = world.tunnel("far.example:443");
  const std::string hello = hello_for("far.example");
  ASSERT_TRUE(peer.send(hello));
  EXPECT_EQ(peer.read(server_hello().size() + hello.size()), server_hello() + hello);
  EXPECT_EQ(corporate.heads(),
            "CONNECT far.example:443 HTTP/1.1\r\nHost: far.example:443\r\nProxy-Authorization: Basic c2VjcmV0\r\n\r\n");
  EXPECT_TRUE(world.table.asked.empty());
}

TEST_F(UpstreamProxyTest, LosesNoByteThatComesWithTheAnswer) {
  Corporate corporate("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nVia: x\r\n\r\nSSH-2.0-first\n");
  world.allow("far.example:22");
  world.options.rules.front().tls = policy::Tls::kAny;
  start(corporate);
  Peer peer = world.tunnel("far.example:22");
  EXPECT_EQ(peer.read_until("\n"), "SSH-2.0-first\n");
}

TEST_F(UpstreamProxyTest, IsAskedForAPlainRequestByItsWholeTarget) {
  Corporate corporate("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  world.allow("far.example");
  start(corporate);
  Peer peer = world.guest();
  ASSERT_TRUE(
      peer.send("GET http://far.example/a?b HTTP/1.1\r\nHost: far.example\r\nProxy-Authorization: mine\r\n\r\n"));
  EXPECT_THAT(peer.read_until("ok"), HasSubstr("200 OK"));
  EXPECT_EQ(corporate.heads(),
            "GET http://far.example/a?b HTTP/1.1\r\nHost: far.example\r\nProxy-Authorization: Basic c2VjcmV0\r\n"
            "Connection: close\r\n\r\n");
}

TEST_F(UpstreamProxyTest, ItsRefusalIsABadGatewayThatTellsNoSecret) {
  for (const char* answer : {"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n",
                             "HTTP/1.1 503 No\r\n\r\n", "rubbish\r\n\r\n", ""}) {
    World own;
    Corporate corporate(answer);
    own.allow("far.example");
    own.options.upstream = UpstreamProxy{"127.0.0.1", corporate.upstream.port(), "Basic c2VjcmV0", {}};
    own.options.dial.deadline = std::chrono::milliseconds(300);
    own.start();
    Peer peer = own.guest();
    ASSERT_TRUE(peer.send("CONNECT far.example:443 HTTP/1.1\r\nHost: far.example:443\r\n\r\n"));
    const std::string refusal = peer.read_all();
    EXPECT_THAT(refusal, HasSubstr(*answer == '\0' ? "dial_timeout" : "the upstream proxy: "));
    EXPECT_THAT(refusal, Not(HasSubstr("c2VjcmV0")));
    EXPECT_THAT(refusal, Not(HasSubstr("Proxy-Auth")));
  }
}

TEST_F(UpstreamProxyTest, APlain407IsNotTheGuests) {
  Corporate corporate("HTTP/1.1 407 Auth\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n");
  world.allow("far.example");
  start(corporate);
  Peer peer = world.guest();
  ASSERT_TRUE(peer.send("GET http://far.example/ HTTP/1.1\r\nHost: far.example\r\n\r\n"));
  EXPECT_THAT(peer.read_all(), HasSubstr("HTTP/1.1 502"));
}

TEST_F(UpstreamProxyTest, TheRulesHoldAllTheSame) {
  Corporate corporate("HTTP/1.1 200 OK\r\n\r\n");
  world.options.addresses = {};
  world.allow("far.example");
  world.allow("*.direct.example");
  world.options.rules.push_back(*policy::parse_host_rule("10.1.2.3", "test"));
  world.options.rules.push_back(*policy::parse_deny_rule("no.example", "test"));
  start(corporate);
  for (const char* target : {"no.example:443", "unknown.example:443", "127.0.0.1:443", "169.254.169.254:80"}) {
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send(std::string("CONNECT ") + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"));
    EXPECT_THAT(peer.read_all(), HasSubstr("HTTP/1.1 403")) << target;
  }
  EXPECT_EQ(corporate.heads(), "");
  // What is reached directly is looked up and checked as ever.
  world.name("a.direct.example", {"10.0.0.1"});
  Peer direct = world.guest();
  ASSERT_TRUE(direct.send("CONNECT a.direct.example:443 HTTP/1.1\r\nHost: a.direct.example:443\r\n\r\n"));
  EXPECT_THAT(direct.read_all(), HasSubstr("address_not_public"));
  // A hello that names another host ends it here too.
  Peer sni = world.tunnel("far.example:443");
  ASSERT_TRUE(sni.send(hello_for("no.example")));
  EXPECT_THAT(sni.read_all(), HasSubstr("\x15\x03"));
}

TEST(UpstreamProxy, LeadsToAllButWhatIsDirect) {
  const UpstreamProxy proxy{"p.test", 1, {}, {"corp.test", "10.0.0.1"}};
  EXPECT_TRUE(proxy.leads_to("example.com"));
  EXPECT_TRUE(proxy.leads_to("notcorp.test"));
  EXPECT_FALSE(proxy.leads_to("corp.test"));
  EXPECT_FALSE(proxy.leads_to("a.b.corp.test"));
  EXPECT_FALSE(proxy.leads_to("10.0.0.1"));
  EXPECT_FALSE(proxy.leads_to("host.belljar"));
  EXPECT_FALSE((UpstreamProxy{"p.test", 1, {}, {"*"}}).leads_to("example.com"));
}

}  // namespace
}  // namespace belljar::egress
