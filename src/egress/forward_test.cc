#include <gtest/gtest.h>

#include <future>
#include <string>

#include "egress/test_world.h"

namespace belljar::egress {
namespace {

using testing::get;
using testing::Peer;
using testing::Upstream;
using testing::World;

// Answers each connection's one request with `response`, and keeps the requests' heads.
struct Site {
  explicit Site(std::string text) : response(std::move(text)) {}
  std::string response;
  std::mutex mutex;
  std::vector<std::string> heads;
  Upstream upstream{[this](Peer& peer) {
    std::string head = peer.read_head();
    {
      const std::lock_guard lock(mutex);
      heads.push_back(std::move(head));
    }
    peer.send(response);
  }};
  std::string at(const std::string& host) const { return upstream.at(host); }
};

TEST(Forward, WritesBothHeadsAnew) {
  Site site(
      "HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\n"
      "Proxy-Authenticate: Basic\r\n\r\nhi");
  World world;
  world.allow_upstream("ok.example", site.upstream);
  world.start();
  Peer peer = world.guest();
  const std::string target = site.at("OK.example");
  ASSERT_TRUE(
      peer.send("GET http://" + target +
                "/a?b=http://c HTTP/1.1\r\nAccept: */*\r\nProxy-Authorization: Basic "
                "c2VjcmV0\r\nProxy-Connection: keep-alive\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\nTE: "
                "trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\nHost: " +
                target + "\r\nCookie: c\r\n\r\n"));
  EXPECT_EQ(peer.read_head(), "HTTP/1.1 200 Fine\r\nX-End: 2\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(peer.read(2), "hi");
  peer.end_writing();
  EXPECT_EQ(peer.read_all(), "");
  EXPECT_TRUE(world.denials().empty());
  ASSERT_EQ(site.heads.size(), 1U);
  EXPECT_EQ(site.heads[0], "GET /a?b=http://c HTTP/1.1\r\nHost: " + site.at("ok.example") +
                               "\r\nAccept: */*\r\nCookie: c\r\nConnection: close\r\n\r\n");
}

// An upstream proxy may have to answer these itself (RFC 9110, section 7.6.2), and a trace shows what it got.
TEST(Forward, PassesOnNothingThatAProxyMayAnswer) {
  for (const char* head : {"TRACE http://%/ HTTP/1.1\r\n", "OPTIONS http://%/ HTTP/1.1\r\nMax-Forwards: 0\r\n",
                           "GET http://%/ HTTP/1.1\r\nmax-forwards: 7\r\n"}) {
    Site site("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    World world;
    world.allow_upstream("ok.example", site.upstream);
    world.start();
    Peer peer = world.guest();
    std::string request = head;
    request.replace(request.find('%'), 1, site.at("ok.example"));
    ASSERT_TRUE(peer.send(request + "Host: " + site.at("ok.example") + "\r\n\r\n"));
    EXPECT_TRUE(peer.read_all().starts_with("HTTP/1.1 400 ")) << request;
    EXPECT_EQ(world.denied(), "bad_request");
    EXPECT_TRUE(site.heads.empty());
  }
}

TEST(Forward, JudgesEachPipelinedRequestByItself) {
  Site one("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none");
  Site two("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo");
  World world;
  world.allow_upstream("one.example", one.upstream);
  world.allow_upstream("two.example", two.upstream);
  world.start();
  Peer peer = world.guest();
  ASSERT_TRUE(peer.send(get(one.at("one.example")) + get(two.at("two.example")) + get("evil.example") +
                        get(one.at("one.example"))));
  EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(peer.read(3), "one");
  EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(peer.read(3), "two");
  const std::string rest = peer.read_all();
  EXPECT_TRUE(rest.starts_with("HTTP/1.1 403 "));
  EXPECT_EQ(rest.find("HTTP/1.1", 1), std::string::npos);
  EXPECT_EQ(world.denied(), "host_not_allowed");
  EXPECT_EQ(one.upstream.connections(), 1);
  EXPECT_EQ(world.table.asked, (std::vector<std::string>{"one.example", "two.example"}));
}

TEST(Forward, CopiesChunkedBodiesBothWays) {
  std::promise<std::string> body;
  Upstream upstream([&](Peer& peer) {
    peer.read_head();
    body.set_value(peer.read_until("\r\n\r\n"));
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n03;ext=1\r\nabc\r\n0\r\nSum: 6\r\n\r\n");
  });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.guest();
  const std::string target = upstream.at("ok.example");
  ASSERT_TRUE(peer.send("PUT http://" + target + "/ HTTP/1.1\r\nHost: " + target +
                        "\r\nTransfer-Encoding: chunked\r\n\r\n0005\r\nhello\r\n0\r\nTotal: 5\r\n\r\n"));
  EXPECT_EQ(body.get_future().get(), "5\r\nhello\r\n0\r\nTotal: 5\r\n\r\n");
  EXPECT_EQ(peer.read_head(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(peer.read_until("\r\n\r\n"), "3\r\nabc\r\n0\r\nSum: 6\r\n\r\n");
  // The connection goes on.
  ASSERT_TRUE(peer.send(get("evil.example")));
  EXPECT_TRUE(peer.read_all().starts_with("HTTP/1.1 403 "));
}

TEST(Forward, GivesAnHttp10ClientThePlainData) {
  Site site("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n");
  World world;
  world.allow_upstream("ok.example", site.upstream);
  world.start();
  Peer peer = world.guest();
  ASSERT_TRUE(peer.send("GET http://" + site.at("ok.example") + "/ HTTP/1.0\r\n\r\n"));
  EXPECT_EQ(peer.read_all(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcdef");
}

TEST(Forward, HeadAndNotModifiedHaveNoBody) {
  for (const auto& [method, status] : {std::pair{"HEAD", "200 OK"}, std::pair{"GET", "304 Not Modified"}}) {
    Site site("HTTP/1.1 " + std::string(status) + "\r\nContent-Length: 500\r\n\r\n");
    World world;
    world.allow_upstream("ok.example", site.upstream);
    world.start();
    Peer peer = world.guest();
    const std::string target = site.at("ok.example");
    const std::string request =
        std::string(method) + " http://" + target + "/ HTTP/1.1\r\nHost: " + target + "\r\n\r\n";
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(peer.send(request));
      EXPECT_EQ(peer.read_head(), "HTTP/1.1 " + std::string(status) + "\r\nContent-Length: 500\r\n\r\n");
    }
  }
}

TEST(Forward, ABodyUntilTheCloseEndsTheConnection) {
  Site site("HTTP/1.0 200 OK\r\n\r\nall of it");
  World world;
  world.allow_upstream("ok.example", site.upstream);
  world.start();
  Peer peer = world.guest();
  ASSERT_TRUE(peer.send(get(site.at("ok.example")) + get(site.at("ok.example"))));
  EXPECT_EQ(peer.read_all(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it");
  EXPECT_EQ(site.upstream.connections(), 1);
}

TEST(Forward, PassesContinueAndTheBodyThatWaitsForIt) {
  Upstream upstream([](Peer& peer) {
    EXPECT_NE(peer.read_head().find("Expect: 100-continue\r\n"), std::string::npos);
    peer.send("HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_EQ(peer.read(5), "hello");
    peer.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
  });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.guest();
  const std::string target = upstream.at("ok.example");
  ASSERT_TRUE(peer.send("POST http://" + target + "/ HTTP/1.1\r\nHost: " + target +
                        "\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"));
  EXPECT_EQ(peer.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(peer.send("hello"));
  EXPECT_EQ(peer.read_head(), "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
}

TEST(Forward, AnEarlyAnswerReachesAClientThatIsStillSending) {
  Site site("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
  World world;
  world.allow_upstream("ok.example", site.upstream);
  world.start();
  Peer peer = world.guest();
  const std::string target = site.at("ok.example");
  ASSERT_TRUE(
      peer.send("POST http://" + target + "/ HTTP/1.1\r\nHost: " + target + "\r\nContent-Length: 1000000\r\n\r\n"));
  EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 413 "));
  EXPECT_EQ(peer.read_all(), "no");  // and closed: what would follow belongs to the body
}

TEST(Forward, AWholeAnswerEndsNoRequestThatTheUpstreamStillTakes) {
  const std::string body(size_t{8} << 20U, 'b');  // more than the lingering close takes
  Upstream upstream([&](Peer& peer) {
    if (peer.read_head().starts_with("GET ")) {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext");
      return;
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly");
    EXPECT_EQ(peer.read(body.size()), body);
  });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.guest();
  const std::string target = upstream.at("ok.example");
  ASSERT_TRUE(peer.send("POST http://" + target + "/ HTTP/1.1\r\nHost: " + target +
                        "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n"));
  EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(peer.read(5), "early");
  ASSERT_TRUE(peer.send(body + get(target))) << "the connection goes on";
  EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(peer.read(4), "next");
}

TEST(Forward, UpgradesToAWebSocketBothWays) {
  Upstream upstream([](Peer& peer) {
    const std::string head = peer.read_head();
    EXPECT_NE(head.find("Connection: Upgrade\r\nUpgrade: websocket\r\n"), std::string::npos) << head;
    EXPECT_NE(head.find("Sec-WebSocket-Key: k\r\n"), std::string::npos) << head;
    peer.send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
        "a\r\n\r\nfirst frame");
    EXPECT_EQ(peer.read(6), "second");
    peer.send("third");
  });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.guest();
  const std::string target = upstream.at("ok.example");
  ASSERT_TRUE(peer.send(get(target, "Connection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n")));
  EXPECT_EQ(peer.read_head(),
            "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\nConnection: Upgrade\r\nUpgrade: "
            "websocket\r\n\r\n");
  EXPECT_EQ(peer.read(11), "first frame");
  ASSERT_TRUE(peer.send("second"));
  EXPECT_EQ(peer.read_all(), "third");
}

TEST(Forward, AnUpgradeNobodyAskedForIsABadGateway) {
  Site site("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
  World world;
  world.allow_upstream("ok.example", site.upstream);
  world.start();
  Peer peer = world.guest();
  ASSERT_TRUE(peer.send(get(site.at("ok.example"), "Connection: Upgrade\r\nUpgrade: h2c\r\n")));
  EXPECT_TRUE(peer.read_all().starts_with("HTTP/1.1 502 "));
}

// E15 of shared/cases/egress.md.
class ForwardBadResponse : public ::testing::TestWithParam<const char*> {};

TEST_P(ForwardBadResponse, IsABadGateway) {
  Site site(GetParam());
  World world;
  world.allow_upstream("ok.example", site.upstream);
  world.start();
  Peer peer = world.guest();
  ASSERT_TRUE(peer.send(get(site.at("ok.example"))));
  EXPECT_TRUE(peer.read_all().starts_with("HTTP/1.1 502 Bad Gateway (belljar: upstream_failed)"));
  EXPECT_EQ(world.denied(), "upstream_failed");
}

INSTANTIATE_TEST_SUITE_P(
    Responses, ForwardBadResponse,
    ::testing::Values("", "HTTP/1.1 200 OK\r\nContent-Le", "SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\n\n",
                      "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
                      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
                      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
                      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx"));

TEST(Forward, ABodyCutShortIsNoWholeBody) {
  for (const char* response : {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                               "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                               "chunked\r\n\r\n5\r\nhal",
                               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"}) {
    Site site(response);
    World world;
    world.allow_upstream("ok.example", site.upstream);
    world.start();
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send(get(site.at("ok.example"))));
    peer.read_all();
    EXPECT_EQ(peer.error(), ECONNRESET) << response;
  }
}

TEST(Forward, AResetUpstreamIsNotTheEndOfABodyUntilTheClose) {
  std::promise<void> seen;
  Upstream upstream([&](Peer& peer) {
    peer.read_head();
    peer.send("HTTP/1.0 200 OK\r\n\r\nhalf");
    seen.get_future().wait();
    peer.reset();
  });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.guest();
  ASSERT_TRUE(peer.send(get(upstream.at("ok.example"))));
  EXPECT_TRUE(peer.read_until("half").ends_with("half"));
  seen.set_value();
  EXPECT_EQ(peer.read_all(), "");
  EXPECT_EQ(peer.error(), ECONNRESET);
}

TEST(Forward, ACutRequestBodyNeverLooksWhole) {
  std::promise<std::string> got;
  Upstream upstream([&](Peer& peer) {
    peer.read_head();
    const std::string body = peer.read_all();
    got.set_value(peer.error() == ECONNRESET ? "reset after " + body : "ended after " + body);
  });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.guest();
  const std::string target = upstream.at("ok.example");
  ASSERT_TRUE(
      peer.send("POST http://" + target + "/ HTTP/1.1\r\nHost: " + target + "\r\nContent-Length: 10\r\n\r\nhalf"));
  peer.end_writing();
  EXPECT_TRUE(got.get_future().get().starts_with("reset after "));
}

TEST(Forward, LargeBodiesPassBothWaysWithinBoundedBuffers) {
  const std::string large(size_t{8} << 20U, 'z');
  Upstream upstream([&](Peer& peer) {
    peer.read_head();
    EXPECT_EQ(peer.read(large.size()), large);
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(large.size()) + "\r\n\r\n" + large);
  });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.guest();
  const std::string target = upstream.at("ok.example");
  ASSERT_TRUE(peer.send("POST http://" + target + "/ HTTP/1.1\r\nHost: " + target +
                        "\r\nContent-Length: " + std::to_string(large.size()) + "\r\n\r\n" + large));
  EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(peer.read(large.size()), large);
}

// Events, long polls, uploads with pauses and sockets of the web live as long as both ends keep them: E13 of
// shared/cases/egress.md.
TEST(Forward, WhatLastsIsHeldToNoDeadline) {
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(400)); };
  Upstream upstream([&](Peer& peer) {
    const std::string head = peer.read_head();
    const std::string body = head.starts_with("POST ") ? "firstlater" : "";
    EXPECT_EQ(peer.read(body.size()), body);
    pause();  // a long poll
    if (head.contains("Upgrade: websocket")) {
      peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
      EXPECT_EQ(peer.read(4), "ping");
      pause();
      peer.send("pong");
      return;
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
    pause();
    peer.send("data: 2\n\n");
  });
  World world;
  for (auto* deadline : {&world.options.head_deadline, &world.options.hello_deadline, &world.options.idle_deadline}) {
    *deadline = std::chrono::milliseconds(150);
  }
  world.options.dial.deadline = std::chrono::milliseconds(150);
  world.allow_upstream("ok.example", upstream);
  world.start();
  const std::string target = upstream.at("ok.example");
  Peer events = world.guest();
  ASSERT_TRUE(events.send(get(target)));
  const std::string seen = events.read_all();
  EXPECT_NE(seen.find("data: 1\n\n"), std::string::npos) << seen;
  EXPECT_NE(seen.find("data: 2\n\n"), std::string::npos) << seen;
  Peer upload = world.guest();
  ASSERT_TRUE(
      upload.send("POST http://" + target + "/ HTTP/1.1\r\nHost: " + target + "\r\nContent-Length: 10\r\n\r\nfirst"));
  pause();
  ASSERT_TRUE(upload.send("later"));
  EXPECT_TRUE(upload.read_head().starts_with("HTTP/1.1 200 "));
  Peer web = world.guest();
  ASSERT_TRUE(web.send(get(target, "Connection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n")));
  EXPECT_TRUE(web.read_head().starts_with("HTTP/1.1 101 "));
  pause();
  ASSERT_TRUE(web.send("ping"));
  EXPECT_EQ(web.read_all(), "pong");
  EXPECT_TRUE(world.denials().empty());
}

}  // namespace
}  // namespace belljar::egress
