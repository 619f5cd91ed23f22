#include "net/tls_hello.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "net/hello_bytes.h"

namespace belljar::net {
namespace {

using testing::extension;
using testing::hello_for;
using testing::hello_message;
using testing::number;
using testing::records;
using testing::server_name;
using testing::vector;

HelloVerdict read(std::string_view bytes) {
  HelloReader reader;
  return reader.feed(bytes);
}

TEST(HelloReader, FindsTheNameWhicheverWayTheBytesCome) {
  const std::string message = hello_message(extension(0x0a0a, "") + server_name("example.com") + extension(43, "abc"));
  for (const size_t fragment : {1UL, 2UL, 5UL, 40UL, 16384UL}) {
    const std::string bytes = records(message, fragment) + "0-RTT bytes";
    for (const size_t piece : {1UL, 3UL, 7UL, bytes.size()}) {
      HelloReader reader;
      for (size_t i = 0; i < bytes.size(); i += piece) reader.feed(std::string_view(bytes).substr(i, piece));
      ASSERT_EQ(reader.verdict(), HelloVerdict::kHost) << fragment << " " << piece << " " << reader.problem();
      EXPECT_EQ(reader.host(), "example.com");
    }
  }
}

TEST(HelloReader, NeedsMoreUntilTheLastByte) {
  const std::string bytes = hello_for("example.com");
  HelloReader reader;
  for (size_t i = 0; i + 1 < bytes.size(); ++i) {
    ASSERT_EQ(reader.feed(std::string_view(bytes).substr(i, 1)), HelloVerdict::kNeedMore) << i;
  }
  EXPECT_EQ(reader.feed(std::string_view(bytes).substr(bytes.size() - 1)), HelloVerdict::kHost);
}

TEST(HelloReader, TakesLargeHellosUpToItsLimit) {
  // Post-quantum key shares make hellos of several kilobytes; whatever fits in 64 KiB of records passes.
  EXPECT_EQ(read(records(hello_message(extension(51, std::string(20'000, 'k')) + server_name("a.example")))),
            HelloVerdict::kHost);
  EXPECT_EQ(read(records(hello_message(extension(51, std::string(64'000, 'k')) + server_name("a.example")))),
            HelloVerdict::kHost);
  EXPECT_EQ(read(records(hello_message(extension(51, std::string(30'000, 'k')) +
                                       extension(52, std::string(35'500, 'k')) + server_name("a.example")))),
            HelloVerdict::kMalformed);
  EXPECT_EQ(read(records(std::string("\x01\x01\x00\x01", 4) + "x")), HelloVerdict::kMalformed);  // says 65,537 bytes
  // Many small records count with their headers.
  EXPECT_EQ(read(records(hello_message(extension(51, std::string(20'000, 'k'))), 1)), HelloVerdict::kMalformed);
}

TEST(HelloReader, TellsWhatIsNotTls) {
  for (const std::string& bytes : std::vector<std::string>{
           "GET / HTTP/1.1\r\n", "SSH-2.0-OpenSSH\r\n", std::string("\x80\x2e\x01\x03\x01", 5),  // SSLv2 hello
           std::string("\x00\x00\x00\x08\x04\xd2\x16\x2f", 8),  // PostgreSQL SSLRequest
           records("x", 1, 21), records("x", 1, 23), std::string("\x16\x02", 2), std::string("\x16\x04", 2),
           "\x05\x01"}) {
    EXPECT_EQ(read(bytes), HelloVerdict::kNotTls) << ::testing::PrintToString(bytes);
  }
}

TEST(HelloReader, TellsAHelloWithoutName) {
  EXPECT_EQ(read(records(hello_message("", false))), HelloVerdict::kNoSni);  // SSL 3.0 and bare TLS 1.0
  EXPECT_EQ(read(records(hello_message(extension(43, "abc")))), HelloVerdict::kNoSni);
}

TEST(HelloReader, RefusesWhatHasTwoMeanings) {
  const std::string good = hello_message(server_name("example.com"));
  const std::string name = std::string(1, '\0') + vector("a.example", 2);
  const std::vector<std::pair<const char*, std::string>> cases = {
      {"server_name twice", records(hello_message(server_name("a.example") + server_name("b.example")))},
      {"two names", records(hello_message(extension(0, vector(name + name, 2))))},
      {"unknown name type", records(hello_message(extension(0, vector(std::string(1, '\1') + vector("a", 2), 2))))},
      {"empty name", records(hello_message(extension(0, vector(std::string(1, '\0') + vector("", 2), 2))))},
      {"empty list", records(hello_message(extension(0, vector("", 2))))},
      {"empty extension", records(hello_message(extension(0, "")))},
      {"bytes after the list", records(hello_message(extension(0, vector(name, 2) + "x")))},
      {"list longer than the extension", records(hello_message(extension(0, number(200, 2) + name)))},
      {"extension cut short", records(hello_message(server_name("a.example") + std::string("\0\x2b\0\x09x", 5)))},
      {"bytes after the hello", records(good + "x")},
      {"another message after the hello", records(good + good)},
      {"another message first", records(std::string("\x02", 1) + good.substr(1))},
      {"an empty record first", std::string("\x16\x03\x01\x00\x00", 5) + records(good)},
      {"a record of 2^14+1 bytes", std::string("\x16\x03\x01\x40\x01", 5) + good},
      {"an alert inside", records(good.substr(0, 20)) + records("xx", 2, 21) + records(good.substr(20))},
      {"another version inside", records(good.substr(0, 20)) + std::string("\x16\x02\x00\x00\x01x", 6)},
      {"shorter than its fields", records(std::string("\x01\x00\x00\x05hello", 9))},
      {"odd suites", records(std::string(1, '\1') + vector(number(0x0303, 2) + std::string(32, 'r') + vector("", 1) +
                                                               vector("abc", 2) + vector("0", 1),
                                                           3))},
      {"no compression",
       records(std::string(1, '\1') +
               vector(number(0x0303, 2) + std::string(32, 'r') + vector("", 1) + vector("ab", 2) + vector("", 1), 3))},
      {"long session id",
       records(std::string(1, '\1') + vector(number(0x0303, 2) + std::string(32, 'r') +
                                                 vector(std::string(33, 's'), 1) + vector("ab", 2) + vector("0", 1),
                                             3))},
      {"bytes after the extensions", records(std::string(1, '\1') + vector(good.substr(4) + "x", 3))}};
  for (const auto& [what, bytes] : cases) {
    HelloReader reader;
    EXPECT_EQ(reader.feed(bytes), HelloVerdict::kMalformed) << what;
    EXPECT_FALSE(reader.problem().empty()) << what;
  }
}

TEST(HelloReader, KeepsTheNameAsSentAndItsVerdict) {
  HelloReader reader;
  EXPECT_EQ(reader.feed(hello_for(std::string_view("ex\0ample", 8))), HelloVerdict::kHost);
  EXPECT_EQ(reader.host(), std::string_view("ex\0ample", 8));
  EXPECT_EQ(reader.feed(hello_for("other.example")), HelloVerdict::kHost);
  EXPECT_EQ(reader.host(), std::string_view("ex\0ample", 8));
}

}  // namespace
}  // namespace belljar::net
