// Situations that users of such proxies have hit, as far as no other test has them: shared/cases/egress.md, E1, E13 and
// E15. docs/egress-cases.md says where each one is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <string>
#include <vector>

#include "egress/test_world.h"
#include "net/hello_bytes.h"

namespace belljar::egress {
namespace {

using net::testing::hello_for;
using net::testing::server_hello;
using testing::get;
using testing::Peer;
using testing::Upstream;
using testing::World;

// E1: what the rules say of a host, in whatever spelling it comes.
TEST(EgressCases, OneCanonicalForm) {
  Upstream upstream([](Peer& peer) {
    peer.read_head();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  const std::string port = ":" + std::to_string(upstream.port());
  World world;
  for (const char* rule : {"OK.example", "*.wild.example.", "xn--bcher-kva.example"}) world.allow(rule + port);
  world.allow("usual.example");
  const std::vector<std::string> canonical = {"ok.example", "a.wild.example", "a.b.wild.example",
                                              "xn--bcher-kva.example"};
  for (const std::string& host : canonical) world.name(host, {"127.0.0.1"});
  world.start();
  struct Spelling {
    std::string authority;
    int status;
  };
  for (const auto& [authority, status] : std::vector<Spelling>{
           {"ok.example" + port, 200},
           {"Ok.EXAMPLE" + port, 200},
           {"ok.example." + port, 200},
           {"ok.example:1", 403},
           {"www.ok.example" + port, 403},
           {"example" + port, 403},
           {"wild.example" + port, 403},
           {"a.wild.example" + port, 200},
           {"A.b.Wild.Example." + port, 200},
           {"awild.example" + port, 403},
           {"a.wild.example.other" + port, 403},
           {"XN--Bcher-KVA.example" + port, 200},
           {"b\xc3\xbc"
            "cher.example" +
                port,
            400},
           {"usual.example" + port, 403},
       }) {
    for (const std::string& request :
         {get(authority), "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n"}) {
      Peer peer = world.guest();
      ASSERT_TRUE(peer.send(request));
      EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 " + std::to_string(status) + " ")) << request;
    }
  }
  world.stop();
  for (const std::string& asked : world.table.asked) {
    EXPECT_NE(std::ranges::find(canonical, asked), canonical.end()) << asked;
  }
}

// E13: each half of a tunnel ends by itself.
TEST(EgressCases, AHalfCloseIsKeptEachWay) {
  const std::string hello = hello_for("ok.example");
  std::promise<std::string> after_theirs;
  Upstream upstream([&](Peer& peer) {
    EXPECT_EQ(peer.read(hello.size()), hello);
    peer.send(server_hello());
    if (peer.read(1) == "1") {
      EXPECT_EQ(peer.read_all(), "last") << "the client's half ends first";
      EXPECT_EQ(peer.error(), 0);
      peer.send("answer");
      return;
    }
    peer.send("answer");
    peer.end_writing();
    after_theirs.set_value(peer.read_all());
  });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  const std::string target = upstream.at("ok.example");
  Peer first = world.tunnel(target);
  ASSERT_TRUE(first.send(hello));
  EXPECT_EQ(first.read(server_hello().size()), server_hello());
  ASSERT_TRUE(first.send("1last"));
  first.end_writing();
  EXPECT_EQ(first.read_all(), "answer");
  EXPECT_EQ(first.error(), 0);
  Peer second = world.tunnel(target);
  ASSERT_TRUE(second.send(hello));
  EXPECT_EQ(second.read(server_hello().size()), server_hello());
  ASSERT_TRUE(second.send("2"));
  EXPECT_EQ(second.read_all(), "answer") << "the server's half ends first";
  EXPECT_EQ(second.error(), 0);
  ASSERT_TRUE(second.send("upload"));
  second.end_writing();
  EXPECT_EQ(after_theirs.get_future().get(), "upload");
}

// E13: a client that goes in the middle of a download.
TEST(EgressCases, AnAbortedDownloadEndsAtTheServerToo) {
  for (const bool tunnel : {true, false}) {
    std::promise<int> ended;
    Upstream upstream([&](Peer& peer) {
      peer.send(peer.read(1) == "G" ? "HTTP/1.1 200 OK\r\n\r\n" : server_hello());
      const std::string chunk(size_t{64} << 10U, 'x');
      while (peer.send(chunk)) {
      }
      ended.set_value(errno);
    });
    World world;
    world.allow_upstream("ok.example", upstream);
    world.start();
    const std::string target = upstream.at("ok.example");
    Peer peer = tunnel ? world.tunnel(target) : world.guest();
    ASSERT_TRUE(peer.send(tunnel ? hello_for("ok.example") : get(target)));
    EXPECT_EQ(peer.read(size_t{1} << 20U).size(), size_t{1} << 20U);
    peer.close();
    const int error = ended.get_future().get();
    EXPECT_TRUE(error == EPIPE || error == ECONNRESET) << error << ", EAGAIN when nobody told the server";
    EXPECT_TRUE(world.denials().empty());
  }
}

// E15: what other tests have of it are silence, an early end and garbage.
TEST(EgressCases, AResetBeforeTheAnswerIsABadGateway) {
  Upstream upstream([](Peer& peer) {
    peer.read_head();
    peer.reset();
  });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.guest();
  ASSERT_TRUE(peer.send(get(upstream.at("ok.example"))));
  EXPECT_TRUE(peer.read_all().starts_with("HTTP/1.1 502 Bad Gateway (belljar: upstream_failed)"));
  EXPECT_EQ(world.denied(), "upstream_failed");
}

}  // namespace
}  // namespace belljar::egress
