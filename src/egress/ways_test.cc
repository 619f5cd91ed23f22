// SOCKS and redirected connections: the same verdicts as by CONNECT and plain HTTP.
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "egress/first_bytes.h"
#include "egress/test_world.h"
#include "net/hello_bytes.h"

namespace belljar::egress {
namespace {

using namespace std::string_literals;
using net::testing::hello_for;
using net::testing::hello_message;
using net::testing::records;
using testing::Peer;
using testing::Upstream;
using testing::World;

const std::string kGreeting = "\x05\x01\x00"s;
const std::string kGreeted = "\x05\x00"s;

std::string socks_port(uint16_t port) {
  return {static_cast<char>(port >> 8U), static_cast<char>(port & 0xffU)};
}
std::string socks_request(const std::string& host, uint16_t port) {
  return "\x05\x01\x00\x03"s + static_cast<char>(host.size()) + host + socks_port(port);
}
std::string socks_answer(char reply) {
  return "\x05"s + reply + "\x00\x01\0\0\0\0\0\0"s;
}

// Keeps all it gets until the client's end, then hands it over.
struct Recorder {
  std::promise<std::string> promise;
  Upstream upstream{[this](Peer& peer) { promise.set_value(peer.read_all()); }};
  std::string received() { return promise.get_future().get(); }
};

// A server that speaks first and takes one line.
void banner(Peer& peer) {
  if (peer.send("SSH-2.0-server\r\n")) peer.send(peer.read_until("\n"));
}

void answer_http(Peer& peer) {
  for (;;) {
    const std::string head = peer.read_head();
    if (head.empty()) return;
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  }
}

Peer socks_tunnel(const World& world, const std::string& host, uint16_t port) {
  Peer peer = world.guest();
  EXPECT_TRUE(peer.send(kGreeting));
  EXPECT_EQ(peer.read(2), kGreeted);
  EXPECT_TRUE(peer.send(socks_request(host, port)));
  EXPECT_EQ(peer.read(10), socks_answer(0));
  return peer;
}

TEST(Socks5, RelaysTlsThatNamesTheHost) {
  Upstream upstream(testing::echo);
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = socks_tunnel(world, "OK.example.", upstream.port());
  const std::string sent = hello_for("ok.example") + "\x17more";
  ASSERT_TRUE(peer.send(sent));
  peer.end_writing();
  EXPECT_EQ(peer.read_all(), net::testing::server_hello() + sent);
  EXPECT_TRUE(world.denials().empty());
}

TEST(Socks5, TakesEverythingInOnePieceAndInPieces) {
  for (const bool pieces : {false, true}) {
    Recorder recorder;
    World world;
    world.allow_upstream("ok.example", recorder.upstream);
    world.start();
    Peer peer = world.guest();
    const std::string hello = hello_for("ok.example");
    const std::string all = kGreeting + socks_request("ok.example", recorder.upstream.port()) + hello;
    for (size_t i = 0; i < all.size(); i += pieces ? 1 : all.size()) {
      ASSERT_TRUE(peer.send(all.substr(i, pieces ? 1 : all.size())));
    }
    EXPECT_EQ(peer.read(12), kGreeted + socks_answer(0));
    peer.end_writing();
    EXPECT_EQ(recorder.received(), hello);
  }
}

TEST(Socks5, RefusesWhatConnectRefuses) {
  Upstream upstream([](Peer& peer) { EXPECT_EQ(peer.read_all(), ""); });
  struct Case {
    const char* what;
    std::string bytes;
    std::string code;
  };
  const std::string other_name = hello_for("evil.example");
  for (const auto& [what, bytes, code] :
       {Case{"another host in the hello", other_name, "sni_mismatch"},
        Case{"no name", records(hello_message("")), "no_sni"},
        Case{"another protocol", "SSH-2.0-client\r\n", "not_tls"}, Case{"binary", "\x01\x02\x03"s, "not_tls"},
        Case{"HTTP to another host", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "bad_request"}}) {
    World world;
    world.allow_upstream("ok.example", upstream);
    world.start();
    Peer peer = socks_tunnel(world, "ok.example", upstream.port());
    ASSERT_TRUE(peer.send(bytes)) << what;
    peer.read_all();
    EXPECT_EQ(world.denied(), code) << what;
  }
}

TEST(Socks5, ADeniedHostIsRefusedAndNeverLookedUp) {
  World world;
  world.allow("ok.example");
  world.allow("db.example:5432");
  world.start();
  struct Case {
    std::string request;
    char reply;
  };
  for (const auto& [request, reply] :
       {Case{socks_request("evil.example", 443), 2}, Case{socks_request("db.example", 443), 2},
        Case{"\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb"s, 2}, Case{"\x05\x01\x00\x01\x08\x08\x08\x08\x01\xbb"s, 2},
        Case{socks_request("8.8.8.8", 443), 2}, Case{"\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb"s, 2},
        // Mapped IPv4 and spellings of no single meaning.
        Case{"\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\x01\x01\xbb"s, 1},
        Case{socks_request("0x7f.1", 443), 1}, Case{socks_request("ok.example\0.evil"s, 443), 1},
        Case{"\x05\x02\x00\x01\x7f\x00\x00\x01\x01\xbb"s, 7}, Case{"\x05\x03\x00\x01\x7f\x00\x00\x01\x01\xbb"s, 7},
        Case{"\x05\x01\x00\x05"s, 8}}) {
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send(kGreeting + request));
    EXPECT_EQ(peer.read_all(), kGreeted + socks_answer(reply)) << request;
  }
  world.stop();
  EXPECT_TRUE(world.table.asked.empty());
}

TEST(Socks5, WantsNoAuthentication) {
  World world;
  world.start();
  for (const std::string& greeting : {"\x05\x01\x02"s, "\x05\x00"s}) {
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send(greeting + socks_request("ok.example", 443)));
    EXPECT_EQ(peer.read_all(), "\x05\xff"s);
  }
}

TEST(Socks5, AGreetingThatDoesNotEndIsClosed) {
  World world;
  world.options.head_deadline = std::chrono::milliseconds(50);
  world.start();
  Peer peer = world.guest();
  ASSERT_TRUE(peer.send("\x05"));
  EXPECT_EQ(peer.read_all(), "\x05\xff"s);
  EXPECT_EQ(world.denied(), "head_timeout");
}

TEST(Socks5, SaysThatNoConnectionCouldBeMade) {
  World world;
  world.allow("gone.example:9");
  world.allow("unknown.example:9");
  world.name("gone.example", {"127.0.0.1"});
  world.start();
  for (const auto& [host, reply] : {std::pair{"gone.example", 5}, std::pair{"unknown.example", 4}}) {
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send(kGreeting + socks_request(host, 9)));
    EXPECT_EQ(peer.read_all(), kGreeted + socks_answer(static_cast<char>(reply)));
  }
}

TEST(Socks5, ARuleForAnyProtocolLetsTheServerSpeakFirst) {
  Upstream upstream(banner);
  World world;
  world.allow_upstream("git.example", upstream);
  world.options.rules.back().tls = policy::Tls::kAny;
  world.start();
  Peer peer = socks_tunnel(world, "git.example", upstream.port());
  EXPECT_EQ(peer.read_until("\n"), "SSH-2.0-server\r\n");
  ASSERT_TRUE(peer.send("SSH-2.0-client\r\n"));
  EXPECT_EQ(peer.read_until("\n"), "SSH-2.0-client\r\n");
  Peer by_connect = world.tunnel("git.example:" + std::to_string(upstream.port()));
  EXPECT_EQ(by_connect.read_until("\n"), "SSH-2.0-server\r\n");
  EXPECT_TRUE(world.denials().empty());
}

TEST(Socks5, HttpIsJudgedRequestByRequest) {
  Upstream upstream(answer_http);
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  const std::string host = upstream.at("ok.example");
  Peer peer = socks_tunnel(world, "ok.example", upstream.port());
  const std::string get = "GET /x HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
  ASSERT_TRUE(peer.send(get + get));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 200 OK\r\n"));
    EXPECT_EQ(peer.read(2), "ok");
  }
  ASSERT_TRUE(peer.send("GET /x HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
  EXPECT_TRUE(peer.read_all().starts_with("HTTP/1.1 400 "));
  EXPECT_EQ(upstream.connections(), 2);
}

// All connections of this world are redirected ones, to `host`.
struct Redirected : World {
  Redirected(const std::string& host, uint16_t to) {
    options.destination_of = [destination = Destination{host, to}](int) { return destination; };
  }
};

TEST(Redirect, TlsThatNamesTheHostPasses) {
  Recorder recorder;
  Redirected world("ok.example", recorder.upstream.port());
  world.allow_upstream("ok.example", recorder.upstream);
  world.start();
  Peer peer = world.guest();
  const std::string hello = hello_for("ok.example");
  for (const char c : hello) ASSERT_TRUE(peer.send(std::string(1, c)));
  peer.end_writing();
  EXPECT_EQ(recorder.received(), hello);
  EXPECT_TRUE(world.denials().empty());
}

TEST(Redirect, WhatIsRefusedNeverReachesTheHost) {
  Upstream upstream([](Peer&) {});
  struct Case {
    const char* what;
    std::string bytes;
    std::string code;
  };
  const std::string host = upstream.at("ok.example");
  for (const auto& [what, bytes, code] :
       {Case{"another host in the hello", hello_for("evil.example"), "sni_mismatch"},
        Case{"no name", records(hello_message("")), "no_sni"},
        Case{"another protocol", "SSH-2.0-client\r\n", "not_tls"},
        Case{"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "not_tls"},
        Case{"a SOCKS greeting", kGreeting, "not_tls"},
        Case{"another Host", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "bad_request"},
        Case{"another port in Host", "GET / HTTP/1.1\r\nHost: ok.example:1\r\n\r\n", "bad_request"},
        Case{"no Host", "GET / HTTP/1.1\r\n\r\n", "bad_request"},
        Case{"another host in the target", "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
             "bad_request"},
        Case{"CONNECT", "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n", "bad_request"}}) {
    Redirected world("ok.example", upstream.port());
    world.allow_upstream("ok.example", upstream);
    world.start();
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send(bytes)) << what;
    peer.read_all();
    EXPECT_EQ(world.denied(), code) << what;
    EXPECT_TRUE(world.table.asked.empty()) << what;
  }
  EXPECT_EQ(upstream.connections(), 0);
}

TEST(Redirect, ADeniedDestinationIsResetAndNeverLookedUp) {
  Redirected world("evil.example", 443);
  world.allow("ok.example");
  world.start();
  Peer peer = world.guest();
  EXPECT_EQ(peer.read_all(), "");
  EXPECT_EQ(peer.error(), ECONNRESET);
  const auto denials = world.denials();
  ASSERT_EQ(denials.size(), 1U);
  EXPECT_EQ(denials.front().reason, Reason::kHostNotAllowed);
  EXPECT_EQ(denials.front().remedy, "--allow-host evil.example");
  EXPECT_TRUE(world.table.asked.empty());
}

TEST(Redirect, AnUnknownAddressIsJudgedAsAnAddress) {
  Redirected world("198.18.0.9", 443);
  world.allow("*.example");
  world.start();
  Peer peer = world.guest();
  peer.read_all();
  EXPECT_EQ(peer.error(), ECONNRESET);
  EXPECT_EQ(world.denied(), "host_not_allowed");
}

TEST(Redirect, PlainHttpGoesByItsPath) {
  Upstream upstream([](Peer& peer) {
    const std::string head = peer.read_head();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(head.size()) + "\r\n\r\n" + head);
  });
  Redirected world("ok.example", upstream.port());
  world.allow_upstream("ok.example", upstream);
  world.start();
  const std::string host = upstream.at("ok.example");
  Peer peer = world.guest();
  for (const std::string& target : {"/a?b"s, "http://" + host + "/a?b"}) {
    ASSERT_TRUE(peer.send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"));
    EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 200 OK\r\n"));
    EXPECT_EQ(peer.read_head(), "GET /a?b HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  }
  EXPECT_EQ(upstream.connections(), 2);
}

TEST(Redirect, ARuleForAnyProtocolLetsTheServerSpeakFirst) {
  Upstream upstream(banner);
  Redirected world("git.example", upstream.port());
  world.allow_upstream("git.example", upstream);
  world.options.rules.back().tls = policy::Tls::kAny;
  world.start();
  Peer peer = world.guest();
  EXPECT_EQ(peer.read_until("\n"), "SSH-2.0-server\r\n");
}

TEST(Redirect, AClientThatSaysNothingIsClosed) {
  Redirected world("ok.example", 443);
  world.options.hello_deadline = std::chrono::milliseconds(50);
  world.allow("ok.example");
  world.start();
  Peer peer = world.guest();
  EXPECT_EQ(peer.read_all(), "");
  EXPECT_EQ(world.denied(), "hello_timeout");
}

TEST(Redirect, OneBeyondTheCapIsClosedWithoutAWord) {
  Redirected world("ok.example", 443);
  world.allow("ok.example");
  world.options.max_connections = 1;
  world.start();
  Peer first = world.guest();
  Peer second = world.guest();
  EXPECT_EQ(second.read_all(), "");
  EXPECT_EQ(world.denied(), "too_many_connections");
}

TEST(FirstBytes, TellAsEarlyAsTheyCan) {
  EXPECT_EQ(first_speech(""), Speech::kUnknown);
  EXPECT_EQ(first_speech("\x16"), Speech::kTls);
  EXPECT_EQ(first_speech("GET"), Speech::kUnknown);
  EXPECT_EQ(first_speech("GET / HTTP/1.1\r"), Speech::kUnknown);
  EXPECT_EQ(first_speech("GET / HTTP/1.1\r\n"), Speech::kHttp);
  EXPECT_EQ(first_speech("SSH-2.0-client\r\n"), Speech::kOther);
  EXPECT_EQ(first_speech("\r\n"), Speech::kOther);
  EXPECT_EQ(first_speech("\0"s), Speech::kOther);
  EXPECT_EQ(first_speech("*1\r\n$4\r\nPING\r\n"), Speech::kOther);
  EXPECT_EQ(first_speech("G\x80T"), Speech::kOther);
  EXPECT_EQ(first_speech("G\x80T / HTTP/1.1\r\n"), Speech::kOther);
  EXPECT_EQ(first_speech(std::string(40, 'A')), Speech::kOther);
  EXPECT_EQ(first_speech("GET /" + std::string(20'000, 'a')), Speech::kHttp);
}

}  // namespace
}  // namespace belljar::egress
