// What follows a judged TLS hello: a second one after a HelloRetryRequest is judged as the first was, and to a server
// that speaks no TLS nothing is said any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "egress/test_world.h"
#include "net/hello_bytes.h"

namespace belljar::egress {
namespace {

using net::testing::hello_for;
using net::testing::server_hello;
using testing::Peer;
using testing::Upstream;
using testing::World;

constexpr std::string_view kRetryRandom(
    "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
    "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c",
    32);
const std::string kChangeCipherSpec("\x14\x03\x03\x00\x01\x01", 6);

std::string early_data(size_t size) {
  return std::string("\x17\x03\x03", 3) + static_cast<char>(size >> 8U) + static_cast<char>(size & 0xffU) +
         std::string(size, 'e');
}

// A server that answers the first hello with `answer`, and then keeps what comes.
struct Server {
  explicit Server(std::string words) : answer(std::move(words)) {}
  std::string answer;
  std::string first = hello_for("ok.example");
  std::promise<std::string> promise;
  Upstream upstream{[this](Peer& peer) {
    const std::string got = peer.read(first.size());
    peer.send(answer);
    promise.set_value(got == first ? peer.read_all() : "no hello");
  }};
  std::string received() { return promise.get_future().get(); }
};

class RetryTest : public ::testing::Test {
 protected:
  Peer begin(Server& server) {
    world.allow_upstream("ok.example", server.upstream);
    world.start();
    return world.tunnel("ok.example:" + std::to_string(server.upstream.port()));
  }
  World world;
};

TEST_F(RetryTest, ASecondHelloThatNamesTheHostPasses) {
  Server server(server_hello(kRetryRandom) + kChangeCipherSpec);
  Peer peer = begin(server);
  ASSERT_TRUE(peer.send(server.first));
  EXPECT_EQ(peer.read(server.answer.size()), server.answer);
  const std::string second = kChangeCipherSpec + early_data(1000) + hello_for("OK.example");
  ASSERT_TRUE(peer.send(second + "rest"));
  peer.end_writing();
  EXPECT_EQ(server.received(), second + "rest");
}

TEST_F(RetryTest, OneThatNamesAnotherHostDoesNot) {
  Server server(server_hello(kRetryRandom));
  Peer peer = begin(server);
  ASSERT_TRUE(peer.send(server.first));
  EXPECT_EQ(peer.read(server.answer.size()), server.answer);
  ASSERT_TRUE(peer.send(kChangeCipherSpec + hello_for("other.example")));
  EXPECT_EQ(peer.read_all(), "");
  EXPECT_EQ(server.received(), "");
  EXPECT_EQ(world.denied(), "sni_mismatch");
}

// Sent at once, before the server has asked: it must not be with the server when it does.
TEST_F(RetryTest, NorOneThatIsSentTooSoon) {
  for (const bool ends : {false, true}) {
    Server server(server_hello(kRetryRandom));
    World own;
    own.allow_upstream("ok.example", server.upstream);
    own.start();
    Peer peer = own.tunnel("ok.example:" + std::to_string(server.upstream.port()));
    ASSERT_TRUE(peer.send(server.first + early_data(100) + hello_for("other.example")));
    if (ends) peer.end_writing();
    EXPECT_EQ(peer.read_all().substr(0, server.answer.size()), server.answer);
    EXPECT_EQ(server.received(), "");
    EXPECT_EQ(own.denied(), "sni_mismatch");
  }
}

TEST_F(RetryTest, NorOneThatIsNoWholeHello) {
  Server server(server_hello(kRetryRandom));
  world.options.hello_deadline = std::chrono::milliseconds(200);
  Peer peer = begin(server);
  ASSERT_TRUE(peer.send(server.first));
  EXPECT_EQ(peer.read(server.answer.size()), server.answer);
  ASSERT_TRUE(peer.send(hello_for("ok.example").substr(0, 20)));
  EXPECT_EQ(peer.read_all(), "");
  EXPECT_EQ(server.received(), "");
}

TEST_F(RetryTest, AfterAnyOtherAnswerTheTunnelIsNotRead) {
  Server server(server_hello());
  Peer peer = begin(server);
  ASSERT_TRUE(peer.send(server.first + early_data(100)));
  EXPECT_EQ(peer.read(server.answer.size()), server.answer);
  ASSERT_TRUE(peer.send(hello_for("other.example")));
  peer.end_writing();
  EXPECT_EQ(server.received(), early_data(100) + hello_for("other.example"));
}

TEST_F(RetryTest, AnAnswerInPiecesIsWaitedFor) {
  const std::string retry = server_hello(kRetryRandom);
  std::promise<std::string> promise;
  Upstream upstream([&](Peer& peer) {
    peer.read(hello_for("ok.example").size());
    const int on = 1;
    ::setsockopt(peer.fd(), IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
    for (const char c : retry) peer.send({&c, 1});
    promise.set_value(peer.read_all());
  });
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.tunnel(upstream.at("ok.example"));
  ASSERT_TRUE(peer.send(hello_for("ok.example") + hello_for("other.example")));
  peer.read_all();
  EXPECT_EQ(promise.get_future().get(), "");
}

TEST_F(RetryTest, ARetryBehindAWarningIsOne) {
  Server server(std::string("\x15\x03\x03\x00\x02\x01\x70", 7) + server_hello(kRetryRandom));
  Peer peer = begin(server);
  ASSERT_TRUE(peer.send(server.first + hello_for("other.example")));
  EXPECT_EQ(peer.read_all().substr(0, server.answer.size()), server.answer);
  EXPECT_EQ(server.received(), "");
  EXPECT_EQ(world.denied(), "sni_mismatch");
}

// A server of another protocol skips what it does not know, and obeys what it knows.
TEST_F(RetryTest, ToAServerThatSpeaksNoTlsNothingMoreIsSaid) {
  const std::string echoed = hello_for("ok.example");
  const std::string endless = std::string("\x15\x03\x03\x00\x02\x01\x70", 7);
  std::string warnings;
  while (warnings.size() < 600) warnings += endless;
  for (const std::string& answer : {std::string("220 mail.example ready\r\n"), std::string("-ERR unknown command\r\n"),
                                    echoed, std::string("\x16", 1) + "?????", warnings}) {
    Server server(answer);
    World own;
    own.allow_upstream("ok.example", server.upstream);
    own.start();
    Peer peer = own.tunnel("ok.example:" + std::to_string(server.upstream.port()));
    ASSERT_TRUE(peer.send(server.first));
    peer.read_all();
    peer.send("QUIT\r\n");
    EXPECT_EQ(server.received(), "") << answer;
    EXPECT_EQ(own.denied(), "not_tls") << answer;
  }
}

// One that says nothing first, and waits for words.
TEST_F(RetryTest, NorToOneThatSaysNothing) {
  for (const bool at_once : {false, true}) {
    Server server("");
    World own;
    own.allow_upstream("ok.example", server.upstream);
    own.start();
    Peer peer = own.tunnel("ok.example:" + std::to_string(server.upstream.port()));
    ASSERT_TRUE(peer.send(server.first + (at_once ? "FLUSHALL\r\n" : "")));
    if (!at_once) {
      ASSERT_TRUE(peer.send("FLUSHALL\r\n"));
    }
    EXPECT_EQ(peer.read_all(), "");
    EXPECT_EQ(server.received(), "");
    EXPECT_EQ(own.denied(), "not_tls");
  }
}

// One that has ended its own words still reads.
TEST_F(RetryTest, NorToOneThatHasEnded) {
  std::promise<std::string> promise;
  Upstream upstream([&](Peer& peer) {
    peer.read(hello_for("ok.example").size());
    peer.send(server_hello(kRetryRandom).substr(0, 9));
    peer.end_writing();
    promise.set_value(peer.read_all());
  });
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.tunnel(upstream.at("ok.example"));
  ASSERT_TRUE(peer.send(hello_for("ok.example")));
  EXPECT_EQ(peer.read_all(), server_hello(kRetryRandom).substr(0, 9));
  peer.send("FLUSHALL\r\n");
  EXPECT_EQ(promise.get_future().get(), "");
}

// The end of a client that has said all it will is passed on, whatever the server does.
TEST_F(RetryTest, ASilentServerDoesNotHoldUpTheEnd) {
  Server server("");
  Peer peer = begin(server);
  ASSERT_TRUE(peer.send(server.first));
  peer.end_writing();
  EXPECT_EQ(server.received(), "");
}

}  // namespace
}  // namespace belljar::egress
