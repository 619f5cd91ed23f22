// The proxy's process dies, or is replaced, while the guest's listener stays: shared/cases/egress.md, E14. Where one
// process is all, the guest ends with it: KillTest of tests/death_test.cc.
#include "egress/kept_listener.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "egress/test_proxy.h"
#include "egress/test_world.h"
#include "net/hello_bytes.h"

namespace belljar::egress {
namespace {

using net::testing::hello_for;
using net::testing::server_hello;
using testing::Peer;
using testing::ProxyProcess;
using testing::Upstream;
using testing::World;

// Bound as the guest binds its own: to a port that is named.
base::Fd listen_on_a_named_port() {
  const uint16_t port = testing::port_of(testing::listen_on("127.0.0.1"));
  return testing::listen_on("127.0.0.1", port);
}

// Of a call on a socket and 127.0.0.1:`port`.
int error_of(decltype(&::connect) call, uint16_t port, int reuse = 0) {
  const base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse), 0);
  sockaddr_storage address{};
  const socklen_t length = net::Endpoint{net::testing::ip("127.0.0.1"), port}.to_sockaddr(address);
  return call(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0 ? 0 : errno;
}

struct KeptWorld : World {
  KeptWorld() {
    base::Fd made = listen_on_a_named_port();
    port = testing::port_of(made);
    auto kept = KeptListener::keep(std::move(made));
    EXPECT_TRUE(kept);
    listener.emplace(std::move(*kept));
    allow("ok.example:*");
    name("ok.example", {"127.0.0.1"});
  }
  std::optional<KeptListener> listener;
};

class KeptListenerTest : public ::testing::Test {
 protected:
  // A tunnel through which bytes pass.
  Peer open_tunnel(const Upstream& upstream) const {
    Peer peer = world.tunnel(upstream.at("ok.example"));
    EXPECT_TRUE(peer.send(hello_for("ok.example")));
    EXPECT_EQ(peer.read(server_hello().size()), server_hello());
    return peer;
  }
  void expect_refused() const {
    for (int i = 0; i < 100; ++i) ASSERT_EQ(error_of(&::connect, world.port), ECONNREFUSED);
    // Nor is the address anybody else's to take.
    for (const int reuse : {0, 1}) EXPECT_EQ(error_of(&::bind, world.port, reuse), EADDRINUSE);
  }

  KeptWorld world;
  base::Fd one = *world.listener->share();
  base::Fd two = *world.listener->share();
};

TEST_F(KeptListenerTest, AKilledProxyMeansRefusalsAndTheNextOneService) {
  ProxyProcess first(world, one);  // both before there is a thread
  ProxyProcess second(world, two);
  // Answers without end, in plain HTTP too, to clients that take some of it and to one that takes all.
  const Upstream upstream([](Peer& peer) {
    peer.send(peer.read(1) == "G" ? "HTTP/1.1 200 OK\r\n\r\n" : server_hello());
    const std::string chunk(size_t{64} << 10U, 'x');
    while (peer.send(chunk)) {
    }
  });
  first.begin();
  Peer tunnel = open_tunnel(upstream);
  Peer stuck = open_tunnel(upstream);
  Peer plain = world.guest();
  ASSERT_TRUE(plain.send("GET http://" + upstream.at("ok.example") +
                         "/ HTTP/1.1\r\nHost: " + upstream.at("ok.example") + "\r\n\r\n"));
  EXPECT_TRUE(plain.read_head().starts_with("HTTP/1.1 200 "));
  std::thread reader([&] { tunnel.read_all(); });
  EXPECT_EQ(plain.read(size_t{1} << 20U).size(), size_t{1} << 20U);
  const int connections = upstream.connections();

  first.kill();
  reader.join();
  EXPECT_NE(tunnel.error(), EAGAIN) << "it was left open";
  Peer waiting = world.guest();  // in the queue of a listener that nobody serves
  ASSERT_TRUE(world.listener->shut());
  EXPECT_EQ(waiting.read_all(), "");
  EXPECT_EQ(waiting.error(), ECONNRESET);
  expect_refused();
  ASSERT_TRUE(world.listener->shut()) << "twice is as good as once";
  expect_refused();
  EXPECT_EQ(upstream.connections(), connections);

  ASSERT_TRUE(world.listener->open()) << "with connections of the first one that nobody has closed yet";
  second.begin();
  EXPECT_TRUE(open_tunnel(upstream).send("more"));
  // And once more, with nobody to follow.
  second.kill();
  ASSERT_TRUE(world.listener->shut());
  expect_refused();
}

TEST_F(KeptListenerTest, AProxyThatIsReplacedEndsWithAnError) {
  const Upstream upstream([](Peer& peer) {
    peer.send(server_hello());
    peer.read_all();
  });
  for (base::Fd* each : {&one, &two}) {
    ASSERT_TRUE(world.listener->open());
    auto proxy = Proxy::create(std::move(*each), world.options);
    ASSERT_TRUE(proxy) << proxy.error().message();
    base::Status ran;
    std::thread server([&] { ran = (*proxy)->run(); });
    Peer peer = open_tunnel(upstream);
    ASSERT_TRUE(world.listener->shut());
    server.join();
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().code, EINVAL);
    expect_refused();
  }
}

TEST(KeptListener, IsOneThatCanComeBack) {
  EXPECT_FALSE(KeptListener::keep(base::Fd()));
  const auto plain = KeptListener::keep(base::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().message(), "keep 'listener': the socket does not listen");
  const auto chosen = KeptListener::keep(testing::listen_on("127.0.0.1"));
  ASSERT_TRUE(chosen);
  ASSERT_TRUE(chosen->shut());
  const auto opened = chosen->open();
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().message().contains("the kernel gave another port")) << opened.error().message();
  // What is shut serves no proxy.
  EXPECT_FALSE(Proxy::create(*chosen->share(), {}));
}

}  // namespace
}  // namespace belljar::egress
