#include "egress/relay.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <random>
#include <string>
#include <thread>

#include "egress/rules.h"
#include "egress/test_world.h"
#include "net/hello_bytes.h"

namespace belljar::egress {
namespace {

using net::testing::hello_for;
using testing::Peer;
using testing::Upstream;
using testing::World;

// Two ends of a TCP connection with small buffers, so that a side that does not read is soon stuck.
struct Pair {
  Pair() {
    const base::Fd listener = testing::listen_on("127.0.0.1");
    auto connected = net::start_connect({net::testing::ip("127.0.0.1"), testing::port_of(listener)});
    EXPECT_TRUE(connected);
    theirs = std::move(*connected);
    ours = base::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    const int small = 64 << 10;
    for (const int fd : {ours.get(), theirs.get()}) {
      ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
      ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    }
  }
  base::Fd ours;
  base::Fd theirs;
};

struct NoOwner final : net::StreamOwner {
  void on_stream(net::Stream& /*stream*/) override {}
};

struct Stop final : net::Alarm {
  explicit Stop(net::EventLoop& each) : loop(each), timer(each, *this) {}
  void on_alarm() override { loop.stop(); }
  net::EventLoop& loop;
  net::Timer timer;
};

// A tunnel between two socket pairs on a loop of the test's own.
class TunnelTest : public ::testing::Test {
 protected:
  void open() {
    auto tunnel = std::make_unique<Tunnel>(company, pipes, *net::Stream::open(*loop, std::move(client.ours), none),
                                           *net::Stream::open(*loop, std::move(upstream.ours), none));
    Tunnel& joined = *tunnel;
    company.join(std::move(tunnel));
    joined.start();
  }
  // Lets the loop do all there is to do.
  void settle() {
    Stop stop(*loop);
    stop.timer.arm(std::chrono::milliseconds(5));
    ASSERT_TRUE(loop->run());
  }

  std::unique_ptr<net::EventLoop> loop = *net::EventLoop::create();
  NoOwner none;
  PipePool pipes{2};
  Company company{*loop};
  Pair client;
  Pair upstream;
};

ssize_t put(const base::Fd& fd, std::string_view text) {
  return ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::string take(const base::Fd& fd, size_t size) {
  std::string out(size, '\0');
  const ssize_t n = ::recv(fd.get(), out.data(), size, MSG_DONTWAIT);
  out.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return out;
}

bool ended(const base::Fd& fd) {
  char byte = 0;
  return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

TEST_F(TunnelTest, HoldsNoPipeWhileIdle) {
  open();
  ASSERT_EQ(put(client.theirs, "ask"), 3);
  settle();
  EXPECT_EQ(take(upstream.theirs, 10), "ask");
  EXPECT_EQ(pipes.lent(), 0U);
  ASSERT_EQ(put(upstream.theirs, "answer"), 6);
  settle();
  EXPECT_EQ(take(client.theirs, 10), "answer");
  EXPECT_EQ(pipes.lent(), 0U);
}

TEST_F(TunnelTest, APeerThatDoesNotReadHoldsOnePipeAtMost) {
  open();
  const std::string chunk(10'000, 'x');
  size_t sent = 0;
  for (int i = 0; i < 300; ++i) {
    const ssize_t n = put(upstream.theirs, chunk);
    if (n > 0) sent += static_cast<size_t>(n);
    if (i % 20 == 0) settle();
  }
  settle();
  EXPECT_LE(pipes.lent(), 1U);
  // The other direction is not held up.
  ASSERT_EQ(put(client.theirs, "ask"), 3);
  settle();
  EXPECT_EQ(take(upstream.theirs, 10), "ask");
  size_t got = 0;
  for (int i = 0; i < 1000 && got < sent; ++i) {
    got += take(client.theirs, 100'000).size();
    settle();
  }
  EXPECT_EQ(got, sent);
  EXPECT_EQ(pipes.lent(), 0U);
}

TEST_F(TunnelTest, KeepsEachHalfOpenUntilItsOwnEnd) {
  open();
  ASSERT_EQ(put(client.theirs, "last"), 4);
  ::shutdown(client.theirs.get(), SHUT_WR);
  settle();
  EXPECT_EQ(take(upstream.theirs, 10), "last");
  EXPECT_TRUE(ended(upstream.theirs));
  ASSERT_EQ(put(upstream.theirs, "still here"), 10);
  settle();
  EXPECT_EQ(take(client.theirs, 20), "still here");
  EXPECT_FALSE(ended(client.theirs));
  EXPECT_EQ(company.size(), 1U);
  ::shutdown(upstream.theirs.get(), SHUT_WR);
  settle();
  EXPECT_TRUE(ended(client.theirs));
  EXPECT_EQ(company.size(), 0U);
}

TEST_F(TunnelTest, TheOtherHalfOpenWorksToo) {
  open();
  ::shutdown(upstream.theirs.get(), SHUT_WR);
  settle();
  EXPECT_TRUE(ended(client.theirs));
  ASSERT_EQ(put(client.theirs, "upload"), 6);
  settle();
  EXPECT_EQ(take(upstream.theirs, 10), "upload");
  EXPECT_EQ(company.size(), 1U);
}

TEST_F(TunnelTest, EndsWhenOneSideIsGone) {
  open();
  upstream.theirs.reset();
  settle();
  put(client.theirs, "to nobody");
  settle();
  EXPECT_EQ(company.size(), 0U);
  EXPECT_EQ(pipes.lent(), 0U);
}

TEST_F(TunnelTest, ADestroyedTunnelGivesItsPipeUpWithItsBytes) {
  open();
  const std::string chunk(10'000, 'x');
  for (int i = 0; i < 200; ++i) {
    put(upstream.theirs, chunk);
    if (i % 20 == 0) settle();
  }
  EXPECT_EQ(pipes.lent(), 1U);
  client.theirs.reset();
  settle();
  EXPECT_EQ(company.size(), 0U);
  EXPECT_EQ(pipes.lent(), 0U);
  auto pipe = pipes.take();
  EXPECT_EQ(take(pipe.out, 1), "");  // nothing of the dead tunnel
  pipes.give(std::move(pipe));
}

TEST_F(TunnelTest, WithoutPipesItCopies) {
  auto one = pipes.take();
  auto two = pipes.take();
  ASSERT_FALSE(pipes.take().valid());  // the limit
  open();
  std::string sent;
  std::string got;
  for (int i = 0; i < 50; ++i) {
    const std::string chunk(4'000, static_cast<char>('a' + i % 26));
    ASSERT_EQ(put(client.theirs, chunk), 4'000);
    sent += chunk;
    settle();
    got += take(upstream.theirs, 100'000);
  }
  ::shutdown(client.theirs.get(), SHUT_WR);
  settle();
  EXPECT_EQ(got, sent);
  EXPECT_TRUE(ended(upstream.theirs));
  pipes.give(std::move(one));
  pipes.give(std::move(two));
}

std::string noise(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

// Both directions at once over TCP, with pipes and without.
TEST(Relay, LosesAndMixesNothing) {
  for (const size_t max_pipes : {size_t{128}, size_t{0}}) {
    const std::string down = net::testing::server_hello() + noise(size_t{6} << 20U, 1);
    const std::string up = hello_for("ok.example") + "\x17" + noise(size_t{6} << 20U, 2);
    Upstream upstream([&](Peer& peer) {
      std::thread sender([&] { peer.send(down); });
      EXPECT_EQ(peer.read(up.size()), up);
      sender.join();
    });
    World world;
    world.options.max_pipes = max_pipes;
    world.allow_upstream("ok.example", upstream);
    world.start();
    Peer peer = world.tunnel(upstream.at("ok.example"));
    std::thread sender([&] { peer.send(up); });
    EXPECT_EQ(peer.read_all(), down);
    sender.join();
  }
}

// splice(2) raises SIGPIPE where send(2) can be told not to; its default action would end the whole process.
TEST(Relay, SurvivesAGuestThatIsGoneWhenBytesCome) {
  ASSERT_EQ(::signal(SIGPIPE, SIG_DFL), SIG_DFL);
  for (int i = 0; i < 50; ++i) {
    Upstream upstream([](Peer& peer) {
      peer.read(1);
      peer.send(net::testing::server_hello());
      for (int k = 0; k < 50; ++k) peer.send("x");
    });
    World world;
    world.allow_upstream("ok.example", upstream);
    world.start();
    Peer peer = world.tunnel(upstream.at("ok.example"));
    ASSERT_TRUE(peer.send(hello_for("ok.example")));
    peer.read(1);
    peer.close();  // with bytes unread: a reset
  }
}

TEST(Relay, PassesAResetOn) {
  Upstream upstream([](Peer& peer) {
    peer.read(1);
    peer.reset();
  });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.tunnel(upstream.at("ok.example"));
  ASSERT_TRUE(peer.send(hello_for("ok.example")));
  peer.read_all();
  EXPECT_EQ(peer.error(), ECONNRESET);
}

TEST(Rules, AWildcardReachesNoAddressAndAPortIsPartOfTheRule) {
  const Rules rules({*policy::parse_host_rule("*.example.com", "a"), *policy::parse_host_rule("db.internal:5432", "b"),
                     *policy::parse_host_rule("any.internal:*", "c")});
  EXPECT_TRUE(rules.decide("a.example.com", 443).allowed);
  EXPECT_EQ(rules.decide("example.com", 443).reason, Reason::kHostNotAllowed);
  EXPECT_EQ(rules.decide("a.example.com", 22).reason, Reason::kPortNotAllowed);
  EXPECT_EQ(text_of(rules.decide("a.example.com", 22).rule), "*.example.com (a)");
  EXPECT_FALSE(rules.decide("db.internal", 443).allowed);
  EXPECT_TRUE(rules.decide("db.internal", 5432).allowed);
  EXPECT_TRUE(rules.decide("any.internal", 1).allowed);
  EXPECT_EQ(Rules({}).decide("example.com", 443).rule, nullptr);
  EXPECT_EQ(allow_flag("2001:db8::1", 5432), "--allow-host [2001:db8::1]:5432");
  policy::HostRule careless;  // no parser lets this through
  careless.pattern = "*.0.0.5";
  EXPECT_FALSE(Rules({careless}).decide("10.0.0.5", 80).allowed);
}

TEST(Rules, ARuleForAnAddressLiftsTheCheckButNeverForThisHost) {
  std::vector<policy::HostRule> list;
  for (const char* text : {"10.0.0.5:5432", "fd00::1:*", "127.0.0.1:*", "0.0.0.0:*", "224.0.0.1:*", "[::1]:*"}) {
    if (auto rule = policy::parse_host_rule(text, "")) list.push_back(*rule);
  }
  ASSERT_GE(list.size(), 4U);
  const Rules rules(list);
  const auto names = [&](const char* text, uint16_t port) { return rules.names_address(net::testing::ip(text), port); };
  EXPECT_TRUE(names("10.0.0.5", 5432));
  EXPECT_FALSE(names("10.0.0.5", 80));
  EXPECT_FALSE(names("10.0.0.6", 5432));
  for (const char* never : {"127.0.0.1", "0.0.0.0", "224.0.0.1", "::1"}) EXPECT_FALSE(names(never, 80)) << never;
}

TEST(DenialLog, CountsEqualOnesAndIsBounded) {
  DenialLog log;
  for (int i = 0; i < 3000; ++i) log.add({"h" + std::to_string(i % 1500), 443, Reason::kHostNotAllowed, {}, {}, {}, 1});
  EXPECT_EQ(log.denials().size(), DenialLog::kLimit);
  EXPECT_EQ(log.denials().front().count, 2U);
  EXPECT_EQ(log.unlisted(), 2U * (1500 - DenialLog::kLimit));
}

// Names that are looked up cost a guest nothing; they leave room for what it asks connections for.
TEST(DenialLog, HasRoomForConnectionsWhateverIsLookedUp) {
  DenialLog log;
  for (int i = 0; i < 5000; ++i) log.add({"h" + std::to_string(i), 0, Reason::kHostNotAllowed, {}, {}, {}, 1});
  EXPECT_EQ(log.denials().size(), DenialLog::kLookups);
  EXPECT_EQ(log.unlisted(), 5000U - DenialLog::kLookups);
  log.add({"attacker.example", 443, Reason::kHostNotAllowed, {}, {}, {}, 1});
  EXPECT_EQ(log.denials().back().host, "attacker.example");
}

TEST(Proxy, RefusesWhatIsNoListener) {
  EXPECT_FALSE(Proxy::create(base::Fd(), {}));
  base::Fd plain(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto made = Proxy::create(std::move(plain), {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message(), "proxy 'listener': the socket does not listen");
}

TEST(Proxy, StopEndsRunWithNobodyThereAndWithLiveTunnels) {
  {
    World world;
    world.start();
  }
  Upstream upstream([](Peer& peer) { peer.read_all(); });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer waiting = world.guest();
  Peer peer = world.tunnel(upstream.at("ok.example"));
  ASSERT_TRUE(peer.send(hello_for("ok.example")));
  world.stop();
  world.proxy.reset();
  EXPECT_EQ(peer.read_all(), "");
}

}  // namespace
}  // namespace belljar::egress
