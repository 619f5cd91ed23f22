#include "egress/budget.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "egress/test_world.h"
#include "net/hello_bytes.h"

namespace belljar::egress {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

TEST(Budget, IsSharedAndGivenBack) {
  Budget budget(100);
  Share one(budget);
  std::optional<Share> two(budget);
  EXPECT_TRUE(one.resize(60));
  EXPECT_TRUE(two->resize(40));
  EXPECT_EQ(budget.used(), 100U);
  EXPECT_FALSE(two->resize(41)) << "one byte over";
  EXPECT_EQ(budget.used(), 100U) << "what was refused is not counted";
  EXPECT_TRUE(one.resize(59)) << "less is always to be had";
  EXPECT_TRUE(two->resize(41));
  EXPECT_FALSE(one.resize(SIZE_MAX)) << "no sum that wraps around";
  EXPECT_EQ(budget.used(), 100U);
  two.reset();
  EXPECT_EQ(budget.used(), 59U);
}

// How many of `peers` the proxy has closed.
size_t closed(const std::vector<Peer>& peers) {
  size_t out = 0;
  for (const Peer& peer : peers) {
    pollfd look{peer.fd(), POLLIN, 0};
    if (::poll(&look, 1, 0) == 1) ++out;
  }
  return out;
}

// Each holds a head that does not end. Together they may take this much and no more, and they alone pay for it.
TEST(Buffers, OfAllConnectionsTogetherAreBounded) {
  constexpr size_t kMost = size_t{256} << 10U;
  constexpr size_t kHeld = size_t{8} << 10U;
  constexpr size_t kPeers = 128;
  Upstream upstream([](Peer& peer) {
    if (peer.read(1) == "\x16") {
      peer.send(net::testing::server_hello());
      return testing::echo(peer);
    }
    peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  World world;
  world.options.max_buffered = kMost;
  world.allow_upstream("ok.example", upstream);
  world.start();
  const std::string authority = upstream.at("ok.example");
  const std::string request = "GET http://" + authority + "/ HTTP/1.1\r\nHost: " + authority + "\r\n";
  Peer tunnel = world.tunnel(authority);
  ASSERT_TRUE(tunnel.send(net::testing::hello_for("ok.example")));
  ASSERT_EQ(tunnel.read(1).size(), 1U);
  std::vector<Peer> peers;
  for (size_t i = 0; i < kPeers; ++i) {
    peers.push_back(world.guest());
    peers.back().send(request + "X: " + std::string(kHeld, 'x'));
  }
  for (int i = 0; i < 1000 && closed(peers) < kPeers - kMost / kHeld; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GE(closed(peers), kPeers - kMost / kHeld);
  EXPECT_LT(closed(peers), kPeers) << "those within the bound are served";
  // A tunnel has no buffer to ask for.
  ASSERT_TRUE(tunnel.send("more"));
  EXPECT_FALSE(tunnel.read(4).empty());
  // What they held is to be had again.
  for (Peer& peer : peers) peer.reset();
  std::string answer;
  for (int i = 0; i < 1000 && !answer.starts_with("HTTP/1.1 200"); ++i) {  // until the proxy has seen the resets
    Peer next = world.guest();
    next.send(request + "\r\n");
    answer = next.read_head();
  }
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200"));
  const auto denials = world.denials();
  ASSERT_FALSE(denials.empty());
  for (const Denial& denial : denials) EXPECT_EQ(code_of(denial.reason), "out_of_resources");
}

}  // namespace
}  // namespace belljar::egress
