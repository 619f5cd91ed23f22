#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <ctime>
#include <future>
#include <string>

#include "egress/test_world.h"
#include "net/hello_bytes.h"

namespace belljar::egress {
namespace {

using net::testing::extension;
using net::testing::hello_for;
using net::testing::hello_message;
using net::testing::records;
using net::testing::server_hello;
using net::testing::server_name;
using testing::echo;
using testing::open_descriptors;
using testing::Peer;
using testing::Upstream;
using testing::World;

// Keeps all it gets until the client's end, then hands it over.
struct Recorder {
  std::promise<std::string> promise;
  Upstream upstream{[this](Peer& peer) { promise.set_value(peer.read_all()); }};
  std::string received() { return promise.get_future().get(); }
};

TEST(Connect, RelaysWhatFollowsAHelloThatNamesTheHost) {
  Upstream upstream(echo);
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.tunnel(upstream.at("ok.example"));
  const std::string hello = hello_for("OK.Example.");  // the same host in another spelling
  ASSERT_TRUE(peer.send(hello));
  EXPECT_EQ(peer.read(server_hello().size() + hello.size()), server_hello() + hello);
  ASSERT_TRUE(peer.send("more"));
  EXPECT_EQ(peer.read(4), "more");
  peer.end_writing();
  EXPECT_EQ(peer.read_all(), "");
  EXPECT_EQ(peer.error(), 0);
  EXPECT_TRUE(world.denials().empty());
}

TEST(Connect, LosesNoEarlyByte) {
  Upstream upstream(echo);
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.guest();
  const std::string target = upstream.at("ok.example");
  const std::string sent = hello_for("ok.example") + "\x17 early data";
  ASSERT_TRUE(peer.send("CONNECT " + target + " HTTP/1.0\r\n\r\n" + sent));
  peer.end_writing();
  EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(peer.read_all(), server_hello() + sent);
}

// As Node's http.request() writes it: the Host of the machine it connects to.
TEST(Connect, MayNameThisProxyInHost) {
  Upstream upstream(echo);
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  const std::string connect = "CONNECT " + upstream.at("ok.example") + " HTTP/1.1\r\nHost: ";
  const std::string own = std::to_string(world.port);
  for (const std::string& host : {"127.0.0.1:" + own, "localhost:" + own}) {
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send(connect + host + "\r\n\r\n"));
    EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 200 ")) << host;
  }
  for (const std::string& host : {"127.0.0.1:" + std::to_string(upstream.port()), std::string("127.0.0.1"),
                                  "127.0.0.2:" + own, "127.0.0.1.:" + own, "127.1:" + own}) {
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send(connect + host + "\r\n\r\n"));
    EXPECT_TRUE(peer.read_head().starts_with("HTTP/1.1 400 ")) << host;
  }
}

// E4 of shared/cases/egress.md.
TEST(Connect, TakesAHelloInOneBytePieces) {
  Recorder recorder;
  World world;
  world.allow_upstream("ok.example", recorder.upstream);
  world.start();
  Peer peer = world.tunnel(recorder.upstream.at("ok.example"));
  const std::string hello = hello_for("ok.example");
  for (const char c : hello) ASSERT_TRUE(peer.send(std::string(1, c)));
  peer.end_writing();
  EXPECT_EQ(recorder.received(), hello);
}

// Real or made up, an ECH extension looks the same from outside; the outer name is the one that counts.
TEST(Connect, AHelloWithEncryptedClientHelloGoesByItsOuterName) {
  const std::string ech = extension(0xfe0d, std::string(200, 'e'));
  Upstream upstream(echo);
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.tunnel(upstream.at("ok.example"));
  const std::string hello = records(hello_message(ech + server_name("ok.example")));
  ASSERT_TRUE(peer.send(hello));
  EXPECT_EQ(peer.read(server_hello().size() + hello.size()), server_hello() + hello);
  Peer other = world.tunnel(upstream.at("ok.example"));
  ASSERT_TRUE(other.send(records(hello_message(ech + server_name("public.example")))));
  EXPECT_EQ(other.read_all(), std::string("\x15\x03\x01\x00\x02\x02\x31", 7));
  peer.close();
  EXPECT_EQ(world.denied(), "sni_mismatch");
}

TEST(Connect, TakesALargeHello) {
  Recorder recorder;
  World world;
  world.allow_upstream("ok.example", recorder.upstream);
  world.start();
  Peer peer = world.tunnel(recorder.upstream.at("ok.example"));
  const std::string hello = records(hello_message(extension(51, std::string(20'000, 'k')) + server_name("ok.example")));
  ASSERT_TRUE(peer.send(hello));
  peer.end_writing();
  EXPECT_EQ(recorder.received(), hello);
}

// What is refused inside a granted tunnel (E3 and E4 of shared/cases/egress.md): nothing of it reaches the upstream,
// and the reason is on record.
struct BadHello {
  const char* name;
  std::string bytes;
  const char* reason;
  bool alert;
};

class ConnectRefusesHello : public ::testing::TestWithParam<BadHello> {};

TEST_P(ConnectRefusesHello, AndForwardsNothing) {
  Recorder recorder;
  World world;
  world.allow_upstream("ok.example", recorder.upstream);
  world.start();
  Peer peer = world.tunnel(recorder.upstream.at("ok.example"));
  ASSERT_TRUE(peer.send(GetParam().bytes));
  EXPECT_EQ(peer.read_all(), GetParam().alert ? std::string("\x15\x03\x01\x00\x02\x02\x31", 7) : "");
  EXPECT_EQ(recorder.received(), "");
  EXPECT_EQ(world.denied(), GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    Hellos, ConnectRefusesHello,
    ::testing::Values(
        BadHello{"OtherHost", hello_for("other.example"), "sni_mismatch", true},
        BadHello{"Subdomain", hello_for("a.ok.example"), "sni_mismatch", true},
        BadHello{"Parent", hello_for("example"), "sni_mismatch", true},
        BadHello{"NulByte", hello_for(std::string_view("ok.example\0.evil", 16)), "sni_mismatch", true},
        BadHello{"Address", hello_for("127.0.0.1"), "sni_mismatch", true},
        BadHello{"Newline", hello_for("ok.example\n"), "sni_mismatch", true},
        BadHello{"NoName", records(hello_message(extension(43, "abc"))), "no_sni", true},
        BadHello{"Tls10", records(hello_message("", false)), "no_sni", true},
        BadHello{"Ssl2", std::string("\x80\x2e\x01\x03\x01\x00\x15", 7), "not_tls", false},
        BadHello{"PlainHttp", "GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n", "not_tls", false},
        BadHello{"TwoNames", records(hello_message(server_name("ok.example") + server_name("other.example"))),
                 "malformed_hello", true},
        BadHello{"TooLarge",
                 records(hello_message(extension(51, std::string(33'000, 'k')) +
                                       extension(52, std::string(33'000, 'k')) + server_name("ok.example"))),
                 "malformed_hello", true}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Connect, AHelloThatDoesNotComeInTimeIsRefused) {
  Recorder recorder;
  World world;
  world.options.hello_deadline = std::chrono::milliseconds(50);
  world.allow_upstream("ok.example", recorder.upstream);
  world.start();
  Peer peer = world.tunnel(recorder.upstream.at("ok.example"));
  EXPECT_EQ(peer.read_all(), "");
  EXPECT_EQ(recorder.received(), "");
  EXPECT_EQ(world.denied(), "hello_timeout");
}

TEST(Connect, ADeniedHostIsRefusedWithItsFlagAndNeverLookedUp) {
  World world;
  world.allow("ok.example");
  world.start();
  Peer peer = world.guest();
  ASSERT_TRUE(peer.send("CONNECT Evil.Example.:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n"));
  const std::string response = peer.read_all();
  EXPECT_TRUE(
      response.starts_with("HTTP/1.1 403 Forbidden (belljar: host_not_allowed, allow with --allow-host "
                           "evil.example)\r\n"))
      << response;
  EXPECT_NE(response.find("start the session with: --allow-host evil.example\n"), std::string::npos);
  Peer again = world.guest();
  ASSERT_TRUE(again.send("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n"));
  EXPECT_EQ(again.read_all(), response);
  const auto denials = world.denials();
  ASSERT_EQ(denials.size(), 1U);
  EXPECT_EQ(denials[0].host, "evil.example");
  EXPECT_EQ(denials[0].port, 443);
  EXPECT_EQ(denials[0].count, 2U);
  EXPECT_EQ(denials[0].remedy, "--allow-host evil.example");
  EXPECT_TRUE(world.table.asked.empty());
}

TEST(Connect, ADeniedPortNamesTheRuleThatCameNearest) {
  World world;
  world.allow("ok.example");
  world.start();
  Peer peer = world.guest();
  ASSERT_TRUE(
      peer.send("CONNECT ok.example:5432 HTTP/1.1\r\nHost: ok.example:5432\r\nAccept: application/json\r\n\r\n"));
  const std::string response = peer.read_all();
  EXPECT_NE(response.find("\r\nContent-Type: application/json\r\n"), std::string::npos) << response;
  EXPECT_NE(response.find("\r\n\r\n{\"error\":\"refused_by_belljar\",\"reason\":\"port_not_allowed\",\"host\":\"ok."
                          "example\",\"port\":5432,\"rule\":\"ok.example (test)\",\"remedy\":\"--allow-host "
                          "ok.example:5432\","),
            std::string::npos)
      << response;
  EXPECT_EQ(world.denied(), "port_not_allowed");
}

// E7 of shared/cases/egress.md.
TEST(Connect, NothingAfterARefusedConnectIsInterpreted) {
  Upstream upstream(echo);
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer peer = world.guest();
  const std::string target = upstream.at("ok.example");
  ASSERT_TRUE(peer.send("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\nCONNECT " + target +
                        " HTTP/1.1\r\nHost: " + target + "\r\n\r\n" + hello_for("ok.example")));
  const std::string response = peer.read_all();
  EXPECT_TRUE(response.starts_with("HTTP/1.1 403 "));
  EXPECT_EQ(response.find("HTTP/1.1", 1), std::string::npos);
  world.stop();
  EXPECT_EQ(upstream.connections(), 0);
}

TEST(Connect, TheDefaultPolicyDialsNeitherLoopbackNorThisHostsOwnAddress) {
  Upstream upstream(echo);
  const auto respond = [&](const AddressPolicy& addresses) {
    World world;
    world.options.addresses = addresses;
    world.allow_upstream("ok.example", upstream);
    world.start();
    Peer peer = world.guest();
    const std::string target = upstream.at("ok.example");
    EXPECT_TRUE(peer.send("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"));
    const std::string response = peer.read_all();
    EXPECT_EQ(world.denied(), "address_not_public");
    return response;
  };
  EXPECT_NE(respond(Options().addresses).find("127.0.0.1 is a loopback address"), std::string::npos);
  EXPECT_EQ(upstream.connections(), 0);
  const AddressPolicy blind{[](const net::IpAddress&) { return true; }, false};
  EXPECT_NE(respond(blind).find("127.0.0.1 is this host's own address"), std::string::npos);
}

TEST(Connect, EachLookupIsCheckedAnew) {
  Upstream upstream(echo);
  World world;
  world.allow_upstream("ok.example", upstream);
  world.name("ok.example", {"10.0.0.5"});  // the second answer
  world.start();
  const std::string target = upstream.at("ok.example");
  Peer first = world.tunnel(target);
  Peer second = world.guest();
  ASSERT_TRUE(second.send("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"));
  const std::string response = second.read_all();
  EXPECT_TRUE(response.starts_with("HTTP/1.1 403 ")) << response;
  EXPECT_NE(response.find("10.0.0.5 is a private address"), std::string::npos) << response;
  first.close();
  const auto denials = world.denials();
  ASSERT_EQ(denials.size(), 1U);
  EXPECT_EQ(denials[0].remedy, "--allow-host 10.0.0.5:" + std::to_string(upstream.port()));
}

TEST(Connect, OfAMixedAnswerOnlyTheCheckedAddressesAreDialled) {
  Upstream upstream(echo);
  World world;
  world.allow(upstream.at("ok.example"));
  world.name("ok.example", {"10.0.0.5", "::1", "::ffff:127.0.0.1", "fd00::1", "127.0.0.1"});
  world.start();
  EXPECT_GE(world.tunnel(upstream.at("ok.example")).fd(), 0);
  EXPECT_TRUE(world.denials().empty());
}

TEST(Connect, MappedAndTranslatedAddressesAreRefused) {
  for (const char* address :
       {"::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::"}) {
    World world;
    world.options.addresses = {};
    world.allow("ok.example");
    world.name("ok.example", {address});
    world.start();
    Peer peer = world.guest();
    ASSERT_TRUE(peer.send("CONNECT ok.example:443 HTTP/1.1\r\nHost: ok.example:443\r\n\r\n"));
    EXPECT_TRUE(peer.read_all().starts_with("HTTP/1.1 403 ")) << address;
    EXPECT_EQ(world.denied(), "address_not_public") << address;
  }
}

// E2 of shared/cases/egress.md.
TEST(Connect, AnAddressIsReachedByARuleForThatAddressOnly) {
  Recorder recorder;
  World world;
  world.allow(recorder.upstream.at("127.0.0.1"));
  world.allow(recorder.upstream.at("ok.example"));
  world.start();
  Peer denied = world.guest();
  const std::string other = recorder.upstream.at("127.0.0.2");
  ASSERT_TRUE(denied.send("CONNECT " + other + " HTTP/1.1\r\nHost: " + other + "\r\n\r\n"));
  EXPECT_TRUE(denied.read_all().starts_with("HTTP/1.1 403 "));
  // Its hello cannot name an address (RFC 6066), so it need not.
  Peer peer = world.tunnel(recorder.upstream.at("127.0.0.1"));
  const std::string hello = records(hello_message(extension(43, "abc")));
  ASSERT_TRUE(peer.send(hello));
  peer.end_writing();
  EXPECT_EQ(recorder.received(), hello);
  EXPECT_EQ(world.denied(), "host_not_allowed");
  EXPECT_TRUE(world.table.asked.empty());
}

TEST(Connect, TriesTheNextAddressWhenOneRefuses) {
  Upstream upstream(echo);  // on 127.0.0.1 only
  World world;
  world.allow(upstream.at("ok.example"));
  world.name("ok.example", {"127.0.0.2", "127.0.0.3", "127.0.0.1"});
  world.start();
  EXPECT_GE(world.tunnel(upstream.at("ok.example")).fd(), 0);
}

TEST(Connect, SaysWhyNoConnectionCouldBeMade) {
  Upstream upstream(echo);
  World world;
  world.allow(upstream.at("ok.example"));
  world.allow("missing.example");
  world.name("ok.example", {"127.0.0.2", "127.0.0.3"});
  world.start();
  const std::string target = upstream.at("ok.example");
  Peer refused = world.guest();
  ASSERT_TRUE(refused.send("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"));
  EXPECT_TRUE(refused.read_all().starts_with("HTTP/1.1 502 Bad Gateway (belljar: dial_failed)"));
  Peer missing = world.guest();
  ASSERT_TRUE(missing.send("CONNECT missing.example:443 HTTP/1.1\r\nHost: missing.example:443\r\n\r\n"));
  const std::string response = missing.read_all();
  EXPECT_TRUE(response.starts_with("HTTP/1.1 502 Bad Gateway (belljar: resolve_failed)"));
  EXPECT_NE(response.find("detail: no such host"), std::string::npos);
}

// A listener whose queue is full drops further SYNs: a host that never answers.
struct SilentHost {
  base::Fd listener = testing::listen_on("127.0.0.1", 0, 0);
  uint16_t port = testing::port_of(listener);
  std::vector<base::Fd> fill;
  SilentHost() {
    for (int i = 0; i < 3; ++i) {
      auto fd = net::start_connect({net::testing::ip("127.0.0.1"), port});
      EXPECT_TRUE(fd);
      fill.push_back(std::move(*fd));
    }
  }
};

// E15 of shared/cases/egress.md.
TEST(Connect, AHostThatNeverAnswersIsGivenUp) {
  SilentHost silent;
  World world;
  world.options.dial.deadline = std::chrono::milliseconds(100);
  world.allow("ok.example:" + std::to_string(silent.port));
  world.name("ok.example", {"127.0.0.1"});
  world.start();
  Peer peer = world.guest();
  const std::string target = "ok.example:" + std::to_string(silent.port);
  ASSERT_TRUE(peer.send("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"));
  EXPECT_TRUE(peer.read_all().starts_with("HTTP/1.1 504 Gateway Timeout (belljar: dial_timeout)"));
}

TEST(Connect, ASilentAddressDoesNotHoldUpTheNext) {
  SilentHost silent;  // on 127.0.0.1
  const base::Fd other = testing::listen_on("127.0.0.2", silent.port);
  World world;  // its deadline is 30 s, longer than Peer waits
  world.options.dial.stagger = std::chrono::milliseconds(20);
  world.allow("ok.example:" + std::to_string(silent.port));
  world.name("ok.example", {"127.0.0.1", "127.0.0.2"});
  world.start();
  EXPECT_GE(world.tunnel("ok.example:" + std::to_string(silent.port)).fd(), 0);
}

// E8 of shared/cases/egress.md.
TEST(Connect, ClientsThatDawdleHurtNobodyAndAreClosed) {
  Upstream upstream(echo);
  World world;
  world.options.head_deadline = std::chrono::milliseconds(500);
  world.options.linger_deadline = std::chrono::seconds(10);
  world.allow_upstream("ok.example", upstream);
  world.start();
  std::vector<Peer> slow;
  for (int i = 0; i < 64; ++i) {
    slow.push_back(world.guest());
    ASSERT_TRUE(slow.back().send("CONNECT ok.ex"));
  }
  for (int round = 0; round < 5; ++round) {
    for (Peer& peer : slow) peer.send("x");
    Peer quick = world.tunnel(upstream.at("ok.example"));
    ASSERT_TRUE(quick.send(hello_for("ok.example")));
    EXPECT_EQ(quick.read(1), "\x16");
  }
  for (Peer& peer : slow) EXPECT_TRUE(peer.read_all().starts_with("HTTP/1.1 408 "));
  EXPECT_EQ(world.denied(), "head_timeout");
}

TEST(Connect, AGuestHasAConnectionCap) {
  Upstream upstream(echo);
  World world;
  world.options.max_connections = 2;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer one = world.tunnel(upstream.at("ok.example"));
  Peer two = world.tunnel(upstream.at("ok.example"));
  Peer three = world.guest();
  EXPECT_TRUE(three.read_all().starts_with("HTTP/1.1 503 Service Unavailable (belljar: too_many_connections)"));
  two.reset();
  std::string answer;
  do {  // until the proxy has seen the reset
    Peer four = world.guest();
    if (!four.send("CONNECT " + upstream.at("ok.example") + " HTTP/1.0\r\n\r\n")) continue;
    answer = four.read(12);
  } while (answer != "HTTP/1.1 200");
}

// The sanitizer looks at objects by a pipe of its own and takes one that it cannot make for a defect.
#ifdef __has_feature
#if __has_feature(undefined_behavior_sanitizer)
#define BELLJAR_NEEDS_DESCRIPTORS
#endif
#endif
#ifndef BELLJAR_NEEDS_DESCRIPTORS
// More clients than the process may open descriptors for (E14 of shared/cases/egress.md): they wait, at no cost, and
// are served.
TEST(Connect, WithoutDescriptorsClientsWait) {
  Upstream upstream(echo);
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  Peer other = world.tunnel(upstream.at("ok.example"));
  base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_storage address{};
  const socklen_t length = net::Endpoint{net::testing::ip("127.0.0.1"), world.port}.to_sockaddr(address);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  Peer waiting(std::move(socket));
  const std::string target = upstream.at("ok.example");
  EXPECT_TRUE(waiting.send("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"));
  // Those that are there go on. The listener, which stays readable, is not asked again and again.
  const std::clock_t begun = std::clock();
  pollfd look{waiting.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&look, 1, 1000), 0);
  EXPECT_LT(std::clock() - begun, CLOCKS_PER_SEC / 2);
  EXPECT_TRUE(other.send(hello_for("ok.example")));
  EXPECT_EQ(other.read(1), "\x16");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(waiting.read_head(), "HTTP/1.1 200 Connection established\r\n\r\n");
}
#endif

TEST(Connect, DescriptorsComeBackWhateverGoesWrong) {
  Upstream upstream([](Peer& peer) {
    peer.read(1);
    peer.reset();
  });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.allow("missing.example");
  world.allow("refused.example:1");
  world.name("refused.example", {"127.0.0.2"});
  world.start();
  const std::string target = upstream.at("ok.example");
  const std::string connect = "CONNECT " + target + " HTTP/1.0\r\n\r\n";
  const auto round = [&] {
    for (const std::string& bytes :
         {connect + hello_for("ok.example"), connect + hello_for("other.example"), connect + "not TLS", connect,
          std::string("CONNECT missing.example:443 HTTP/1.0\r\n\r\n"),
          std::string("CONNECT refused.example:1 HTTP/1.0\r\n\r\n"),
          std::string("CONNECT evil.example:443 HTTP/1.0\r\n\r\n"),
          std::string("GET http://evil.example/ HTTP/1.1\r\n"),
          "GET http://" + target + "/ HTTP/1.1\r\nHost: " + target + "\r\n\r\n", std::string("\x16\x03\x01 junk\r\n"),
          std::string()}) {
      Peer peer = world.guest();
      peer.send(bytes);
      peer.end_writing();
      peer.read_all();
      Peer hasty = world.guest();
      hasty.send(bytes);
      hasty.reset();
    }
  };
  round();
  // The proxy and the upstream's threads close theirs a moment after the guest: waits for a count, ten seconds at most.
  const auto least = [&](size_t good_enough, int tries) {
    size_t count = open_descriptors();
    for (int i = 0; i < tries && count > good_enough; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      count = std::min(count, open_descriptors());
    }
    return count;
  };
  const size_t before = least(0, 200);
  for (int i = 0; i < 40; ++i) round();
  EXPECT_LE(least(before, 10'000), before);
}

// An upstream may fail in every way as often as it likes: E15 of shared/cases/egress.md.
TEST(Connect, FiveThousandFailingUpstreamsLeaveNoDescriptor) {
  Upstream upstream([turn = std::make_shared<std::atomic<int>>(0)](Peer& peer) {
    switch ((*turn)++ % 4) {
      case 0:
        break;  // closes at once
      case 1:
        peer.reset();
        break;
      case 2:
        peer.send("garbage\r\n\r\n");
        break;
      default:
        peer.read(1);
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\ncut off");
        break;
    }
  });
  World world;
  world.allow_upstream("ok.example", upstream);
  world.start();
  const std::string target = upstream.at("ok.example");
  const std::string get = "GET http://" + target + "/ HTTP/1.1\r\nHost: " + target + "\r\n\r\n";
  const std::string connect = "CONNECT " + target + " HTTP/1.0\r\n\r\n" + hello_for("ok.example");
  const auto fail = [&](int times) {
    for (int i = 0; i < times; ++i) {
      Peer peer = world.guest();
      peer.send(i % 2 == 0 ? get : connect);
      peer.read_all();
    }
  };
  fail(100);
  const size_t before = open_descriptors();
  fail(5000);
  size_t after = open_descriptors();
  for (int i = 0; i < 10'000 && after > before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    after = open_descriptors();
  }
  EXPECT_LE(after, before);
}

}  // namespace
}  // namespace belljar::egress
