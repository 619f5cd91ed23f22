#include "egress/hook.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "egress/test_world.h"
#include "policy/hook_url.h"

namespace belljar::egress {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

// A control host on loopback: it keeps what it is sent and gives every request `answer`.
struct Control {
  explicit Control(std::string text) : answer(std::move(text)) {}
  std::string answer;
  std::mutex mutex;
  std::vector<std::string> heads;
  std::vector<std::string> bodies;
  Upstream upstream{[this](Peer& peer) {
    std::string head = peer.read_head();
    const size_t at = head.find("Content-Length: ");
    std::string body = peer.read(at == std::string::npos ? 0 : std::stoul(head.substr(at + 16)));
    {
      const std::lock_guard lock(mutex);
      heads.push_back(std::move(head));
      bodies.push_back(std::move(body));
    }
    peer.send(answer);
  }};
  [[nodiscard]] std::string authority() const { return "127.0.0.1:" + std::to_string(upstream.port()); }
};

constexpr const char* kFine =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nSet-Cookie: a=b\r\nX-Control: 1\r\nContent-Length: 2\r\n\r\nok";

struct HookWorld : World {
  explicit HookWorld(const Control& control, const std::string& target = "/hook?x=1") {
    const std::string url = "http://" + control.authority() + target;
    for (policy::HostRule& rule : policy::hook_rules({url, {}, {}}, "test")) options.rules.push_back(std::move(rule));
    options.hook = Hook{"127.0.0.1", control.upstream.port(), target, "s3cret", "0123456789abcdef"};
    // As in production: no address of this host but by the hook.
    options.addresses = {};
  }
  std::string ask(const std::string& request) const {
    Peer peer = guest();
    peer.send(request);
    return peer.read_all();
  }
};

std::string post(const std::string& url, const std::string& host, const std::string& more = {},
                 const std::string& body = "{}") {
  return "POST " + url + " HTTP/1.1\r\nHost: " + host +
         "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + more + "\r\n" + body;
}

std::string status_of(const std::string& answer) {
  return answer.substr(0, 12);
}

TEST(HookRelay, SendsTheOneRequestWrittenAnew) {
  Control control(kFine);
  HookWorld world(control);
  world.start();
  const std::string more =
      "Content-Type: application/json\r\nAuthorization: Bearer forged\r\nBelljar-Session: forged\r\nCookie: c\r\n"
      "X-Forwarded-For: 1.2.3.4\r\nX-HTTP-Method-Override: DELETE\r\nExpect: 100-continue\r\n";
  const std::string by_name = world.ask(post("http://hook.belljar/hook?x=1", "hook.belljar", more));
  EXPECT_EQ(by_name, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  const std::string by_url =
      world.ask(post("http://" + control.authority() + "/hook?x=1", control.authority(), more, "[1]"));
  EXPECT_EQ(status_of(by_url), "HTTP/1.1 200");
  world.stop();
  ASSERT_EQ(control.heads.size(), 2U);
  const std::string head = "POST /hook?x=1 HTTP/1.1\r\nHost: " + control.authority() +
                           "\r\nContent-Type: application/json\r\nContent-Length: ";
  const std::string rest =
      "\r\nAuthorization: Bearer s3cret\r\nBelljar-Session: 0123456789abcdef\r\nConnection: close"
      "\r\n\r\n";
  EXPECT_EQ(control.heads[0], head + "2" + rest);
  EXPECT_EQ(control.heads[1], head + "3" + rest);
  EXPECT_EQ(control.bodies[1], "[1]");
}

TEST(HookRelay, RefusesEverythingElseOfThatHost) {
  Control control(kFine);
  HookWorld world(control);
  world.start();
  const std::string host = control.authority();
  const std::string url = "http://" + host;
  const std::vector<std::string> requests = {
      "GET " + url + "/hook?x=1 HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
      "PUT " + url + "/hook?x=1 HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 0\r\n\r\n",
      "OPTIONS " + url + "/hook?x=1 HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
      post(url + "/", host),
      post(url + "/hook", host),
      post(url + "/hook?x=2", host),
      post(url + "/hook?x=1&y", host),
      post(url + "/hook/?x=1", host),
      post(url + "/hook/../api?x=1", host),
      post(url + "/api/sessions", host),
      post(url + "/HOOK?x=1", host),
      post(url + "//hook?x=1", host),
      post(url + "/%68ook?x=1", host),
      post("http://hook.belljar/api", "hook.belljar"),
      post("http://hook.belljar:" + std::to_string(control.upstream.port()) + "/hook?x=1",
           "hook.belljar:" + std::to_string(control.upstream.port())),
      post("http://localhost:" + std::to_string(control.upstream.port()) + "/hook?x=1",
           "localhost:" + std::to_string(control.upstream.port())),
      post(url + "/hook?x=1", "other.example"),
      "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
      "CONNECT hook.belljar:80 HTTP/1.1\r\nHost: hook.belljar:80\r\n\r\n",
  };
  for (const std::string& request : requests) {
    const std::string answer = world.ask(request);
    EXPECT_TRUE(status_of(answer) == "HTTP/1.1 403" || status_of(answer) == "HTTP/1.1 400") << request << answer;
  }
  world.stop();
  EXPECT_EQ(control.upstream.connections(), 0);
}

TEST(HookRelay, TakesNoSmuggledRequest) {
  Control control(kFine);
  HookWorld world(control);
  world.start();
  const std::string host = control.authority();
  const std::string head = "POST http://" + host + "/hook?x=1 HTTP/1.1\r\nHost: " + host + "\r\n";
  for (const char* more :
       {"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "Content-Length: +2\r\n\r\n{}",
        "Content-Type: a\r\nContent-Type: b\r\nContent-Length: 2\r\n\r\n{}", "Content-Length: 2\r\nX: a\rb\r\n\r\n{}",
        "Content-Length: 1048577\r\n\r\n", "Content-Length: 2\r\nHost: evil\r\n\r\n{}"}) {
    const std::string answer = world.ask(head + more);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 4")) << more << answer;
  }
  // What follows the body is a request of its own, and judged as one.
  const std::string answer = world.ask(head + "Content-Length: 2\r\n\r\n{}POST http://" + host +
                                       "/api HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 0\r\n\r\n");
  EXPECT_NE(answer.find("HTTP/1.1 403"), std::string::npos);
  world.stop();
  EXPECT_EQ(control.upstream.connections(), 1);
}

TEST(HookRelay, FollowsNoRedirectAndTellsNothingOfIt) {
  Control control("HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/api\r\nContent-Length: 0\r\n\r\n");
  HookWorld world(control);
  world.start();
  const std::string answer = world.ask(post("http://hook.belljar/hook?x=1", "hook.belljar"));
  EXPECT_EQ(status_of(answer), "HTTP/1.1 502");
  EXPECT_EQ(answer.find("Location"), std::string::npos);
  world.stop();
  EXPECT_EQ(control.upstream.connections(), 1);
}

TEST(HookRelay, BoundsTheAnswer) {
  {
    Control control("HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n");
    HookWorld world(control);
    world.start();
    EXPECT_EQ(status_of(world.ask(post("http://hook.belljar/hook?x=1", "hook.belljar"))), "HTTP/1.1 502");
  }
  Control control("HTTP/1.1 200 OK\r\n\r\n" + std::string(size_t{3} << 20U, 'x'));
  HookWorld world(control);
  world.start();
  EXPECT_LT(world.ask(post("http://hook.belljar/hook?x=1", "hook.belljar")).size(), size_t{2} << 20U);
}

TEST(HookRelay, BoundsTheRate) {
  Control control(kFine);
  HookWorld world(control);
  for (policy::HostRule& rule : world.options.rules) rule.requests_per_minute = 2;
  world.start();
  std::string last;
  for (int i = 0; i < 3; ++i) last = world.ask(post("http://hook.belljar/hook?x=1", "hook.belljar"));
  EXPECT_EQ(status_of(last), "HTTP/1.1 429");
  world.stop();
  EXPECT_EQ(control.upstream.connections(), 2);
}

TEST(HookRelay, TakesNothingFromAGrantAndADenialWins) {
  Control control(kFine);
  HookWorld world(control);
  world.options.addresses = {&testing::is_test_address, true};
  world.allow_upstream("ok.example", control.upstream);
  world.allow("127.0.0.1:" + std::to_string(control.upstream.port()));
  world.start();
  const std::string host = control.authority();
  const std::string request = "GET http://" + host + "/api HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(status_of(world.ask(request)), "HTTP/1.1 200");
  world.stop();
  EXPECT_EQ(control.heads[0].find("s3cret"), std::string::npos);

  HookWorld denied(control);
  denied.options.rules.push_back(*policy::parse_deny_rule("127.0.0.1", "test"));
  denied.start();
  EXPECT_EQ(status_of(denied.ask(post("http://hook.belljar/hook?x=1", "hook.belljar"))), "HTTP/1.1 403");
}

// The rule for the hook names an address of this host; no other name may be led there by it.
TEST(HookRelay, OpensItsAddressToNoOtherName) {
  Control control(kFine);
  HookWorld world(control);
  world.allow_upstream("turned.example", control.upstream);
  world.start();
  const std::string host = "turned.example:" + std::to_string(control.upstream.port());
  const std::string answer = world.ask(post("http://" + host + "/hook?x=1", host));
  EXPECT_EQ(status_of(answer), "HTTP/1.1 403") << answer;
  world.stop();
  EXPECT_EQ(control.upstream.connections(), 0);
}

}  // namespace
}  // namespace belljar::egress
