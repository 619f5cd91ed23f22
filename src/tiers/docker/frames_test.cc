#include "tiers/docker/frames.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <thread>

namespace belljar::tiers::docker {
namespace {

std::string frame(char stream, const std::string& text) {
  std::string out{stream, 0, 0, 0, 0, 0, static_cast<char>(text.size() >> 8U), static_cast<char>(text.size() & 255U)};
  return out + text;
}

TEST(FrameReader, PutsTheStreamsTogetherHoweverTheyAreCut) {
  const std::string bytes = frame(1, "out") + frame(2, "err") + frame(1, "") + frame(1, std::string(300, 'x'));
  for (size_t step = 1; step <= bytes.size(); ++step) {
    FrameReader reader;
    std::string out;
    std::string err;
    for (size_t at = 0; at < bytes.size(); at += step) {
      ASSERT_TRUE(reader.take(std::string_view(bytes).substr(at, step), [&](FrameReader::Stream stream, auto part) {
        (stream == FrameReader::Stream::kOut ? out : err) += part;
      }));
    }
    EXPECT_TRUE(reader.at_border());
    EXPECT_EQ(out, "out" + std::string(300, 'x'));
    EXPECT_EQ(err, "err");
  }
}

TEST(FrameReader, RefusesAnyOtherFraming) {
  const auto none = [](FrameReader::Stream, std::string_view) {};
  for (const std::string& bytes : {std::string("plain text"), std::string("\0\0\0\0\0\0\0\1x", 9),
                                   std::string("\3\0\0\0\0\0\0\1x", 9), std::string("\1\1\0\0\0\0\0\1x", 9)}) {
    FrameReader reader;
    EXPECT_FALSE(reader.take(bytes, none));
    EXPECT_FALSE(reader.take(frame(1, "x"), none)) << "once broken, always";
  }
}

class GatherTest : public ::testing::Test {
 protected:
  // What comes of an engine that reads all input, then says `reply`.
  base::Result<Output> gather_from(const std::string& reply, std::string_view input = "", size_t most = 1000) {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    std::thread engine([&, fd = pair[1]] {
      const base::Fd end(fd);
      std::array<char, 64> buffer{};
      for (ssize_t n = 0; (n = ::recv(fd, buffer.data(), buffer.size(), 0)) > 0;) {
        heard_.append(buffer.data(), static_cast<size_t>(n));
      }
      (void)!::send(fd, reply.data(), reply.size(), MSG_NOSIGNAL);
    });
    Hijacked attached{base::Fd(pair[0]), frame(1, "early ")};
    auto out = gather(std::move(attached), input, most, base::Deadline::after(std::chrono::seconds(20)));
    engine.join();
    return out;
  }
  std::string heard_;
};

TEST_F(GatherTest, WritesTheInputEndsItAndReadsBothStreams) {
  const auto output = gather_from(frame(1, "out") + frame(2, "err"), "the input");
  ASSERT_TRUE(output.has_value());
  EXPECT_EQ(output->out, "early out");
  EXPECT_EQ(output->err, "err");
  EXPECT_EQ(heard_, "the input");
}

TEST_F(GatherTest, TakesNoStreamThatWasCutOffOrIsTooLong) {
  EXPECT_FALSE(gather_from(frame(1, "out").substr(0, 10)).has_value());
  EXPECT_FALSE(gather_from("garbage!").has_value());
  EXPECT_EQ(gather_from(frame(1, "0123456789"), "", 10).error().code, EFBIG);
  EXPECT_TRUE(gather_from(frame(1, "0123"), "", 10).has_value());
}

}  // namespace
}  // namespace belljar::tiers::docker
