#include "net/tls_answer.h"

#include <gtest/gtest.h>

#include <string>

namespace belljar::net {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

std::string record(int type, const std::string& payload) {
  return bytes({type, 3, 3, static_cast<int>(payload.size() >> 8U), static_cast<int>(payload.size() & 0xffU)}) +
         payload;
}

std::string server_hello(const std::string& random) {
  return bytes({2, 0, 0, 40, 3, 3}) + random + std::string(6, '\0');
}

const std::string& retry_random() {
  static const std::string kRandom =
      bytes({0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
             0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c});
  return kRandom;
}

std::string client_hello(const std::string& host) {
  const int name = static_cast<int>(host.size());
  const std::string sni = bytes({0, 0, 0, name + 5, 0, name + 3, 0, 0, name}) + host;
  const std::string body = bytes({3, 3}) + std::string(32, 'r') + bytes({0, 0, 2, 0x13, 1, 1, 0, 0}) +
                           bytes({static_cast<int>(sni.size())}) + sni;
  return record(22, bytes({1, 0, 0, static_cast<int>(body.size())}) + body);
}

TEST(TlsAnswer, TellsARetryHoweverItIsCut) {
  const std::string retry = record(22, server_hello(retry_random()));
  EXPECT_EQ(judge_tls_answer(retry), TlsAnswer::kRetry);
  for (size_t size = 0; size < 43; ++size) {
    EXPECT_EQ(judge_tls_answer(retry.substr(0, size)), TlsAnswer::kNeedMore) << size;
  }
  std::string tiny;
  for (const char c : server_hello(retry_random())) tiny += record(22, std::string(1, c));
  EXPECT_EQ(judge_tls_answer(tiny), TlsAnswer::kRetry);
  EXPECT_LE(tiny.size(), kMostTlsAnswer);
}

TEST(TlsAnswer, TellsARetryBehindWarnings) {
  const std::string warning = record(21, bytes({1, 112}));
  EXPECT_EQ(judge_tls_answer(warning), TlsAnswer::kNeedMore);
  EXPECT_EQ(judge_tls_answer(warning.substr(0, 6)), TlsAnswer::kNeedMore);
  EXPECT_EQ(judge_tls_answer(warning + record(22, server_hello(retry_random()))), TlsAnswer::kRetry);
  EXPECT_EQ(judge_tls_answer(warning + warning + record(22, server_hello(std::string(32, 'r')))), TlsAnswer::kFinal);
}

TEST(TlsAnswer, TellsWhatEndsTheHandshake) {
  std::string near = retry_random();
  near.back() ^= 1;
  EXPECT_EQ(judge_tls_answer(record(22, server_hello(near))), TlsAnswer::kFinal);
  EXPECT_EQ(judge_tls_answer(record(21, bytes({2, 40}))), TlsAnswer::kFinal);
}

TEST(TlsAnswer, AnythingElseIsNoTls) {
  for (const std::string& other :
       {std::string("SSH-2.0"), std::string("HTTP/1.1 400 Bad Request\r\n"), record(22, ""), record(21, bytes({2})),
        record(21, bytes({3, 40})), record(23, "data"), record(22, bytes({1, 0, 0, 40})), client_hello("a.test"),
        bytes({22, 'a', 'b', 0, 9, 2}), bytes({0})}) {
    EXPECT_EQ(judge_tls_answer(other), TlsAnswer::kNotTls) << other;
    EXPECT_EQ(judge_tls_answer(record(21, bytes({1, 112})) + other), TlsAnswer::kNotTls) << other;
  }
}

TEST(SecondHello, IsReadBehindWhatTheServerSkips) {
  const std::string flight = record(20, bytes({1})) + record(23, std::string(300, 'e')) + client_hello("a.test");
  SecondHelloReader whole;
  EXPECT_EQ(whole.feed(flight), HelloVerdict::kHost);
  EXPECT_EQ(whole.hello().host(), "a.test");
  SecondHelloReader pieces;
  HelloVerdict verdict = HelloVerdict::kNeedMore;
  for (const char c : flight) {
    EXPECT_EQ(verdict, HelloVerdict::kNeedMore);
    verdict = pieces.feed({&c, 1});
  }
  EXPECT_EQ(verdict, HelloVerdict::kHost);
}

TEST(SecondHello, IsNotWaitedForWithoutEnd) {
  SecondHelloReader reader;
  HelloVerdict verdict = HelloVerdict::kNeedMore;
  for (int i = 0; i < 10 && verdict == HelloVerdict::kNeedMore; ++i)
    verdict = reader.feed(record(23, std::string(16000, 'e')));
  EXPECT_EQ(verdict, HelloVerdict::kMalformed);
  SecondHelloReader other;
  EXPECT_EQ(other.feed("GET / HTTP/1.1\r\n"), HelloVerdict::kNotTls);
}

}  // namespace
}  // namespace belljar::net
