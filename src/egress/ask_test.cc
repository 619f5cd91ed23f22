// Hosts that no rule decides about, put to a person.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "egress/question.h"
#include "egress/questions.h"
#include "egress/test_world.h"
#include "net/hello_bytes.h"

namespace belljar::egress {
namespace {

using net::testing::hello_for;
using net::testing::server_hello;
using testing::echo;
using ::testing::HasSubstr;
using testing::Peer;
using testing::Upstream;
using testing::World;

// The one who asks the person.
class Person {
 public:
  explicit Person(World& world) {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    world.options.questions = std::make_shared<base::Fd>(pair[0]);
    ours_ = Peer(base::Fd(pair[1]));
  }
  // The next question, as `host:port`; "none" when none comes before the socket ends.
  std::string hear() {
    if (::recv(ours_.fd(), &question_, sizeof question_, 0) != static_cast<ssize_t>(sizeof question_)) return "none";
    return std::string(question_.host.data()) + ":" + std::to_string(question_.port);
  }
  [[nodiscard]] bool is_asked() const {
    char byte = 0;
    return ::recv(ours_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  }
  void say(Answer answer) const {
    const AnswerMessage message{.answer = answer, .number = question_.number};
    EXPECT_EQ(::send(ours_.fd(), &message, sizeof message, 0), static_cast<ssize_t>(sizeof message));
  }
  void send(const std::string& bytes) { EXPECT_TRUE(ours_.send(bytes)); }
  void leave() { ours_.close(); }

 private:
  Peer ours_;
  QuestionMessage question_;
};

Peer connect_to(World& world, const std::string& target) {
  Peer peer = world.guest();
  EXPECT_TRUE(peer.send("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"));
  return peer;
}

class AskTest : public ::testing::Test {
 protected:
  AskTest() {
    world.name("ask.example", {"127.0.0.1"});
    world.name("other.example", {"127.0.0.1"});
  }
  bool works(Peer& peer, const std::string& host) {
    if (!peer.read_head().starts_with("HTTP/1.1 200")) return false;
    const std::string hello = hello_for(host);
    return peer.send(hello) && peer.read(server_hello().size() + hello.size()) == server_hello() + hello;
  }

  Upstream upstream{echo};
  World world;
  Person person{world};
  std::string target = upstream.at("ask.example");
};

TEST_F(AskTest, OnceIsForWhatWaits) {
  world.start();
  Peer one = connect_to(world, target);
  Peer two = connect_to(world, target);
  EXPECT_EQ(person.hear(), target);
  // The second may come after the answer; then it is asked about anew, so it is made to be there.
  Peer marker = connect_to(world, upstream.at("other.example"));
  EXPECT_EQ(person.hear(), upstream.at("other.example"));
  person.say(Answer::kDeny);
  EXPECT_THAT(marker.read_all(), HasSubstr("person_denied"));
  EXPECT_TRUE(world.table.asked.empty());  // nothing was looked up
  // That answer was to the other question: the first has another number.
  Peer third = connect_to(world, upstream.at("third.example"));
  EXPECT_EQ(person.hear(), upstream.at("third.example"));
  person.say(Answer::kTimeout);
  EXPECT_THAT(third.read_all(), HasSubstr("nobody_answered"));
}

TEST_F(AskTest, OnceLetsOneRequestPassAndAsksForTheNext) {
  world.start();
  Peer one = connect_to(world, target);
  EXPECT_EQ(person.hear(), target);
  person.say(Answer::kOnce);
  EXPECT_TRUE(works(one, "ask.example"));
  Peer two = connect_to(world, target);
  EXPECT_EQ(person.hear(), target);
  person.say(Answer::kDeny);
  EXPECT_THAT(two.read_all(), HasSubstr("person_denied"));
  // What was denied is not asked again.
  Peer three = connect_to(world, target);
  EXPECT_THAT(three.read_all(), HasSubstr("person_denied"));
  EXPECT_FALSE(person.is_asked());
}

TEST_F(AskTest, ASessionsYesIsARule) {
  world.start();
  Peer one = connect_to(world, target);
  EXPECT_EQ(person.hear(), target);
  person.say(Answer::kSession);
  EXPECT_TRUE(works(one, "ask.example"));
  Peer two = connect_to(world, target);
  EXPECT_TRUE(works(two, "ask.example"));
  EXPECT_FALSE(person.is_asked());
  // Another port of the host is another question, and a hello for another host is none of this one's.
  Peer port = connect_to(world, "ask.example:1");
  EXPECT_EQ(person.hear(), "ask.example:1");
  Peer sni = connect_to(world, target);
  EXPECT_THAT(sni.read_head(), HasSubstr("200"));
  ASSERT_TRUE(sni.send(hello_for("other.example")));
  sni.read_all();
  const auto denials = world.denials();
  EXPECT_TRUE(std::ranges::any_of(denials, [](const Denial& each) { return each.reason == Reason::kSniMismatch; }));
}

TEST_F(AskTest, OnceOfAPlainRequestIsNotForTheNextOnItsConnection) {
  Upstream web([](Peer& peer) {
    peer.read_head();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  world.start();
  const std::string host = web.at("ask.example");
  const std::string request = "GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
  Peer peer = world.guest();
  ASSERT_TRUE(peer.send(request + request));
  EXPECT_EQ(person.hear(), host);
  person.say(Answer::kOnce);
  EXPECT_THAT(peer.read_until("ok"), HasSubstr("200 OK"));
  EXPECT_EQ(person.hear(), host);
  person.say(Answer::kDeny);
  EXPECT_THAT(peer.read_all(), HasSubstr("person_denied"));
}

TEST_F(AskTest, NeverAboutWhatARuleDeniesOrLimitsNorAboutPlacesOfItsOwn) {
  policy::HostRule limited = *policy::parse_host_rule("limited.example:1", "test");
  limited.methods = {"GET"};
  world.options.rules = {*policy::parse_deny_rule("denied.example", "test"), limited};
  world.start();
  for (const char* host : {"denied.example:1", "limited.example:1", "host.belljar:22", "localhost:80", "127.0.0.1:80",
                           "10.0.0.1:443", "169.254.169.254:80", "a.localhost:80", "[::1]:80", "hook.belljar:80"}) {
    Peer peer = connect_to(world, host);
    EXPECT_THAT(peer.read_all(), HasSubstr("HTTP/1.1 403")) << host;
  }
  EXPECT_FALSE(person.is_asked());
}

TEST_F(AskTest, AnAnswerGivesNoPrivateAddress) {
  world.options.addresses = {};  // as in production
  world.start();
  Peer peer = connect_to(world, "ask.example:443");
  EXPECT_EQ(person.hear(), "ask.example:443");
  person.say(Answer::kSession);
  EXPECT_THAT(peer.read_all(), HasSubstr("address_not_public"));
}

TEST_F(AskTest, WithoutThePersonItIsARefusal) {
  world.start();
  Peer one = connect_to(world, target);
  EXPECT_EQ(person.hear(), target);
  person.leave();
  EXPECT_THAT(one.read_all(), HasSubstr("host_not_allowed"));
  Peer two = connect_to(world, target);
  EXPECT_THAT(two.read_all(), HasSubstr("host_not_allowed"));
}

TEST_F(AskTest, AnAnswerThatIsNoneIsTheEndOfAsking) {
  world.start();
  Peer one = connect_to(world, target);
  EXPECT_EQ(person.hear(), target);
  person.send("yes!");
  EXPECT_THAT(one.read_all(), HasSubstr("host_not_allowed"));
}

TEST_F(AskTest, AClientThatIsGoneHurtsNobody) {
  world.start();
  {
    Peer gone = connect_to(world, target);
    EXPECT_EQ(person.hear(), target);
    gone.reset();
  }
  Peer other = connect_to(world, upstream.at("other.example"));
  EXPECT_EQ(person.hear(), upstream.at("other.example"));
  person.say(Answer::kSession);
  EXPECT_TRUE(works(other, "other.example"));
}

TEST_F(AskTest, AGuestThatInventsHostsFillsNoQueue) {
  world.start();
  std::vector<Peer> peers;
  for (size_t i = 0; i < Questions::kOpen; ++i) {
    peers.push_back(connect_to(world, "h" + std::to_string(i) + ".example:443"));
    EXPECT_EQ(person.hear(), "h" + std::to_string(i) + ".example:443");
  }
  Peer beyond = connect_to(world, "beyond.example:443");
  EXPECT_THAT(beyond.read_all(), HasSubstr("host_not_allowed"));
}

TEST_F(AskTest, WhoIsAskedWithoutEndIsNotAskedAnyMore) {
  world.start();
  for (int i = 0; i < Questions::kMostRefused; ++i) {
    Peer peer = connect_to(world, "h" + std::to_string(i) + ".example:443");
    EXPECT_EQ(person.hear(), "h" + std::to_string(i) + ".example:443");
    person.say(i % 2 == 0 ? Answer::kDeny : Answer::kTimeout);
    peer.read_all();
  }
  Peer more = connect_to(world, "more.example:443");
  EXPECT_THAT(more.read_all(), HasSubstr("host_not_allowed"));
  EXPECT_EQ(person.hear(), "none");
}

TEST_F(AskTest, ANoToOneOfTheUsualPortsIsANoToBoth) {
  world.start();
  Peer one = connect_to(world, "ask.example:443");
  EXPECT_EQ(person.hear(), "ask.example:443");
  person.say(Answer::kDeny);
  one.read_all();
  Peer two = world.guest();
  ASSERT_TRUE(two.send("GET http://ask.example/ HTTP/1.1\r\nHost: ask.example\r\n\r\n"));
  EXPECT_THAT(two.read_all(), HasSubstr("person_denied"));
  EXPECT_FALSE(person.is_asked());
}

TEST_F(AskTest, TheProxyMayEndWhileAQuestionIsOpen) {
  world.start();
  Peer peer = connect_to(world, target);
  EXPECT_EQ(person.hear(), target);
  world.stop();
  world.proxy.reset();
  peer.read_all();
  EXPECT_EQ(person.hear(), "none");
}

TEST_F(AskTest, SocksAndRedirectedConnectionsAreAskedAboutToo) {
  world.options.destination_of = [this](int) { return Destination{"ask.example", upstream.port()}; };
  world.start();
  Peer peer = world.guest();
  const std::string hello = hello_for("ask.example");
  ASSERT_TRUE(peer.send(hello));
  EXPECT_EQ(person.hear(), target);
  person.say(Answer::kOnce);
  EXPECT_EQ(peer.read(server_hello().size() + hello.size()), server_hello() + hello);
}

}  // namespace
}  // namespace belljar::egress
