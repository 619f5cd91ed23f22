#include "tiers/docker/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "tiers/docker/engine.h"
#include "tiers/docker/fake_engine.h"
#include "tiers/docker/reach.h"

namespace belljar::tiers::docker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kPatience = std::chrono::seconds(20);

Outcome get(const std::string& socket, std::chrono::milliseconds patience = kPatience) {
  return carry_out(socket, {.method = "GET", .target = "/x", .deadline = base::Deadline::after(patience)});
}

// What an engine that answers `text` and closes is taken for.
Outcome told(const std::string& text) {
  const FakeEngine engine([&](int fd) {
    (void)read_request(fd);
    say(fd, text);
  });
  return get(engine.socket());
}

TEST(Exchange, IsAnsweredWithABodyOfEitherFraming) {
  const Outcome sized = told("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
  ASSERT_TRUE(std::holds_alternative<Answered>(sized));
  EXPECT_EQ(std::get<Answered>(sized).body, "{}");
  const Outcome chunked =
      told("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n1\r\n]\r\n0\r\n\r\n");
  ASSERT_TRUE(std::holds_alternative<Answered>(chunked));
  EXPECT_EQ(std::get<Answered>(chunked).status, 201);
  EXPECT_EQ(std::get<Answered>(chunked).body, "[1]");
  EXPECT_TRUE(std::holds_alternative<Answered>(told("HTTP/1.1 204 No Content\r\n\r\n")));
  EXPECT_TRUE(std::holds_alternative<Answered>(told("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 304 Not Modified\r\n\r\n")));
}

TEST(Exchange, IsRefusedInTheEnginesWords) {
  const Outcome outcome = told(
      "HTTP/1.1 409 Conflict\r\nContent-Length: 26\r\n\r\n{\"message\":\"name is taken\"}"
      "");
  // One byte short of the object: still an answer, and the status says it all.
  ASSERT_TRUE(std::holds_alternative<Refused>(outcome));
  EXPECT_TRUE(std::get<Refused>(outcome).conflict());
  const Outcome whole = told("HTTP/1.1 404 Not Found\r\nContent-Length: 21\r\n\r\n{\"message\":\"no such\"}\n");
  ASSERT_TRUE(std::holds_alternative<Refused>(whole));
  EXPECT_TRUE(std::get<Refused>(whole).absent());
  EXPECT_EQ(std::get<Refused>(whole).reason, "no such");
  const auto error = require(whole, "find", "x");
  EXPECT_EQ(error.error().message(), "find 'x': the container engine refused: no such");
}

TEST(Exchange, IsRefusedWhenNobodyCouldHaveHeard) {
  const Outcome outcome = get("/nonexistent/engine.sock");
  ASSERT_TRUE(std::holds_alternative<Refused>(outcome));
  EXPECT_EQ(std::get<Refused>(outcome).status, 0);
  EXPECT_THAT(require(outcome, "open", "it").error().message(), HasSubstr("DOCKER_HOST=unix:///path"));
}

// Every place where an engine can fall silent, and everything that is no answer by RFC 9112.
TEST(Exchange, IsUnknownWithoutAWholeAnswer) {
  for (const char* text : {"", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
                           "HTTP/1.1 500 Oops\r\nContent-Length: 30\r\n\r\n{", "HTTP/1.1 200 OK\r\n\r\n{}",
                           "nonsense\r\n\r\n", "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                           "HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\n\r\n"}) {
    EXPECT_TRUE(std::holds_alternative<Unknown>(told(text))) << text;
  }
}

TEST(Exchange, IsUnknownWhenTheAnswerDoesNotComeInTime) {
  const FakeEngine engine([](int fd) {
    (void)read_request(fd);
    pollfd gone{fd, POLLRDHUP, 0};
    (void)::poll(&gone, 1, -1);
  });
  const Outcome outcome = get(engine.socket(), std::chrono::milliseconds(50));
  ASSERT_TRUE(std::holds_alternative<Unknown>(outcome));
  EXPECT_EQ(std::get<Unknown>(outcome).code, ETIMEDOUT);
}

TEST(Exchange, IsRefusedWhenTheTimeWasUpBefore) {
  const FakeEngine engine([](int) { FAIL() << "nobody may be asked"; });
  const Outcome outcome = get(engine.socket(), std::chrono::milliseconds(-1));
  ASSERT_TRUE(std::holds_alternative<Refused>(outcome));
  EXPECT_EQ(std::get<Refused>(outcome).status, 0);
}

TEST(Exchange, KeepsNoMoreOfAnAnswerThanAsked) {
  const FakeEngine engine([](int fd) {
    (void)read_request(fd);
    say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world");
  });
  const Request request{
      .method = "GET", .target = "/x", .most_answer = 10, .deadline = base::Deadline::after(kPatience)};
  EXPECT_EQ(std::get<Unknown>(carry_out(engine.socket(), request)).code, EFBIG);
}

// An engine may refuse an upload before it has read it all, and closes its end: the answer counts.
TEST(Exchange, HearsARefusalInTheMiddleOfAnUpload) {
  const FakeEngine engine([](int fd) {
    char first = 0;
    (void)!::recv(fd, &first, 1, 0);
    say(fd, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    ::shutdown(fd, SHUT_RD);
  });
  const base::Fd file(::memfd_create("upload", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 8 << 20), 0);
  const Request request{.method = "POST",
                        .target = "/x",
                        .body = {.type = "application/x-tar", .file = file.get(), .file_bytes = 8 << 20},
                        .deadline = base::Deadline::after(kPatience)};
  const Outcome outcome = carry_out(engine.socket(), request);
  ASSERT_TRUE(std::holds_alternative<Refused>(outcome)) << std::get<Unknown>(outcome).reason;
  EXPECT_EQ(std::get<Refused>(outcome).status, 413);
}

TEST(Exchange, IsUnknownWhenTheUploadShrinks) {
  const FakeEngine engine([](int fd) { (void)read_request(fd); });
  const base::Fd file(::memfd_create("upload", MFD_CLOEXEC));
  const Request request{.method = "POST",
                        .target = "/x",
                        .body = {.type = "application/x-tar", .file = file.get(), .file_bytes = 10},
                        .deadline = base::Deadline::after(kPatience)};
  EXPECT_TRUE(std::holds_alternative<Unknown>(carry_out(engine.socket(), request)));
}

TEST(Exchange, TakesTheConnectionOver) {
  const FakeEngine engine([](int fd) {
    EXPECT_THAT(read_request(fd), HasSubstr("\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"));
    say(fd, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nearly");
    EXPECT_EQ(read_request(fd), "later");
  });
  Hijacked taken;
  const Request request{.method = "POST", .target = "/x", .hijack = true, .deadline = base::Deadline::after(kPatience)};
  ASSERT_TRUE(std::holds_alternative<Answered>(carry_out(engine.socket(), request, &taken)));
  EXPECT_EQ(taken.early, "early");
  say(taken.stream.get(), "later");
}

TEST(EngineSocket, IsOneOfThisHost) {
  EXPECT_EQ(engine_socket(""), "/var/run/docker.sock");
  EXPECT_EQ(engine_socket("unix:///run/user/1/docker.sock"), "/run/user/1/docker.sock");
  for (const char* other :
       {"tcp://127.0.0.1:2375", "ssh://host", "unix://", "unix://relative", "/var/run/docker.sock"}) {
    EXPECT_FALSE(engine_socket(other).has_value()) << other;
  }
}

TEST(EngineOpen, RefusesWhatItCannotSpeakTo) {
  std::string version;
  const FakeEngine engine([&](int fd) {
    (void)read_request(fd);
    say(fd, "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(version.size()) + "\r\n\r\n" + version);
  });
  const auto open = [&](const std::string& text) {
    version = text;
    return Engine::open(engine.socket(), base::Deadline::after(kPatience)).error().message();
  };
  EXPECT_THAT(open(R"({"Version":"19.3","ApiVersion":"1.40","MinAPIVersion":"1.12","Os":"linux"})"),
              HasSubstr("speaks API 1.40, refusing"));
  EXPECT_THAT(open(R"({"Version":"20.1","ApiVersion":"1.41","MinAPIVersion":"1.12","Os":"windows"})"),
              HasSubstr("windows containers"));
  EXPECT_THAT(open("[]"), HasSubstr("not of the API's form"));
  EXPECT_THAT(open("{}"), HasSubstr("not of the API's form"));
}

// One request, when the engine says what it speaks in the head of its answer; else what it speaks is asked for first.
TEST(EngineOpen, AsksNoMoreThanItHasTo) {
  const std::string info = R"({"ServerVersion":"26.1","OSType":"linux","PidsLimit":true,"Runtimes":{"runc":{}}})";
  const std::string version = R"({"Version":"29.0","ApiVersion":"1.52","MinAPIVersion":"1.44","Os":"linux"})";
  const std::string too_old = R"({"message":"client version 1.41 is too old"})";
  std::vector<std::string> asked;
  bool young = false;
  const FakeEngine engine([&](int fd) {
    const std::string request = read_request(fd);
    asked.push_back(request.substr(0, request.find(" HTTP")));
    const bool refused = young && asked.back() == "GET /v1.41/info";
    const std::string& body = refused ? too_old : asked.back() == "GET /version" ? version : info;
    say(fd, std::string(refused ? "HTTP/1.1 400 Bad Request" : "HTTP/1.1 200 OK") +
                "\r\nApi-Version: 1.45\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  });
  const auto opened = Engine::open(engine.socket(), base::Deadline::after(kPatience));
  ASSERT_TRUE(opened.has_value()) << opened.error().message();
  EXPECT_EQ(opened->info().version, "26.1");
  EXPECT_EQ(opened->info().api, "1.45");
  EXPECT_THAT(asked, ElementsAre("GET /v1.41/info"));
  young = true;
  asked.clear();
  const auto negotiated = Engine::open(engine.socket(), base::Deadline::after(kPatience));
  ASSERT_TRUE(negotiated.has_value()) << negotiated.error().message();
  EXPECT_EQ(negotiated->info().api, "1.52");
  EXPECT_THAT(asked, ElementsAre("GET /v1.41/info", "GET /version", "GET /v1.44/info"));
}

// However much is to be done in an engine that does not answer, it is waited for once.
TEST(ReachTest, WaitsForAnEngineOnce) {
  std::atomic<int> asked = 0;
  const FakeEngine engine([&](int fd) {
    (void)read_request(fd);
    ++asked;
  });
  Reach reach(std::chrono::milliseconds(300));
  EXPECT_FALSE(reach.answers(engine.socket()).has_value());
  const int before = asked;
  EXPECT_GT(before, 0);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(reach.answers(engine.socket()).has_value());
  EXPECT_EQ(asked, before);
  EXPECT_TRUE(is_silent(engine.socket(), base::Deadline::after(std::chrono::milliseconds(50))));
  EXPECT_TRUE(is_silent("/nonexistent/engine.sock", base::Deadline::after(std::chrono::milliseconds(50))));
}

// One that refuses is there.
TEST(ReachTest, AnEngineThatRefusesIsNotSilent) {
  const FakeEngine engine([](int fd) {
    (void)read_request(fd);
    say(fd, "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n");
  });
  EXPECT_FALSE(is_silent(engine.socket(), base::Deadline::after(kPatience)));
}

TEST(PercentEncode, LeavesOnlyWhatIsSafeInAPath) {
  EXPECT_EQ(percent_encode("a/b:c@sha256 {\"x\"}"), "a%2Fb%3Ac%40sha256%20%7B%22x%22%7D");
}

}  // namespace
}  // namespace belljar::tiers::docker
