#include "net/socks.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace belljar::net {
namespace {

using namespace std::string_literals;

TEST(Socks, TakesMethodsWithTheOneItKnows) {
  const auto some = read_socks_methods("\x05\x03\x02\x00\x01more"s);
  ASSERT_TRUE(some);
  EXPECT_EQ(some->length, 5U);
  EXPECT_TRUE(some->none);
  const auto password = read_socks_methods("\x05\x01\x02"s);
  ASSERT_TRUE(password);
  EXPECT_EQ(password->length, 3U);
  EXPECT_FALSE(password->none);
  EXPECT_FALSE(read_socks_methods("\x05\x00"s)->none);
  EXPECT_FALSE(read_socks_methods("\x04\x01\x00"s));
}

TEST(Socks, TakesNamesAndAddresses) {
  const auto name = read_socks_request("\x05\x01\x00\x03\x0aok.example\x01\xbbmore"s);
  ASSERT_TRUE(name);
  EXPECT_EQ(name->length, 17U);
  EXPECT_EQ(name->host, "ok.example");
  EXPECT_EQ(name->port, 443);
  const auto v4 = read_socks_request("\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x50"s);
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->host, "192.0.2.7");
  EXPECT_EQ(v4->port, 80);
  const auto v6 = read_socks_request("\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x16"s);
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "2001:db8::1");
  EXPECT_EQ(v6->port, 22);
}

TEST(Socks, WaitsForTheRestOfWhatIsGoodSoFar) {
  for (const std::string& whole :
       {"\x05\x01\x00\x03\x0aok.example\x01\xbb"s, "\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x50"s,
        "\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x16"s}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      const auto part = read_socks_request(whole.substr(0, size));
      ASSERT_TRUE(part) << size;
      EXPECT_EQ(part->length, 0U) << size;
    }
    EXPECT_EQ(read_socks_request(whole)->length, whole.size());
  }
  for (size_t size = 0; size < 4; ++size)
    EXPECT_EQ(read_socks_methods("\x05\x02\x00\x01"s.substr(0, size))->length, 0U);
}

TEST(Socks, RefusesAtTheByteThatIsWrong) {
  struct Case {
    std::string bytes;
    SocksReply reply;
  };
  for (const auto& [bytes, reply] :
       {Case{"\x04"s, SocksReply::kGeneralFailure}, Case{"\x05\x02"s, SocksReply::kCommandNotSupported},
        Case{"\x05\x03"s, SocksReply::kCommandNotSupported}, Case{"\x05\x00"s, SocksReply::kCommandNotSupported},
        Case{"\x05\x01\x01"s, SocksReply::kGeneralFailure},
        Case{"\x05\x01\x00\x02"s, SocksReply::kAddressTypeNotSupported},
        Case{"\x05\x01\x00\x00"s, SocksReply::kAddressTypeNotSupported},
        Case{"\x05\x01\x00\x03\x00"s, SocksReply::kGeneralFailure},
        Case{"\x05\x01\x00\x03\x01x\x00\x00"s, SocksReply::kGeneralFailure}}) {
    const auto verdict = read_socks_request(bytes);
    ASSERT_FALSE(verdict) << bytes.size();
    EXPECT_EQ(verdict.error().reply, reply);
    EXPECT_FALSE(verdict.error().text.empty());
  }
}

TEST(Socks, AnswersAreThoseOfTheStandard) {
  EXPECT_EQ(socks_method_reply(true), "\x05\x00"s);
  EXPECT_EQ(socks_method_reply(false), "\x05\xff"s);
  EXPECT_EQ(socks_reply(SocksReply::kNotAllowed), "\x05\x02\x00\x01\0\0\0\0\0\0"s);
}

}  // namespace
}  // namespace belljar::net
