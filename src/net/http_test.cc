#include <gtest/gtest.h>

#include <string>

#include "net/http_body.h"
#include "net/http_head.h"
#include "net/http_target.h"

namespace belljar::net {
namespace {

TEST(HeadScanner, LooksAtEachByteOnceAndStopsAtTheEmptyLine) {
  const std::string text = "GET / HTTP/1.1\r\nHost: a\r\n\r\nbody";
  HeadScanner scanner;
  for (size_t i = 0; i < text.size() - 4; ++i) {
    const auto length = scanner.scan(std::string_view(text).substr(0, i + 1));
    ASSERT_TRUE(length) << i;
    EXPECT_EQ(*length, i + 1 == text.size() - 4 ? text.size() - 4 : 0) << i;
  }
}

TEST(HeadScanner, HasLimits) {
  HeadScanner scanner({.start_line = 20, .total = 100, .fields = 2});
  EXPECT_EQ(scanner.scan("GET /0123456789012345678901").error().status, 414);
  scanner.restart();
  EXPECT_EQ(scanner.scan("GET / HTTP/1.1\r\na: 1\r\nb: 2\r\nc: 3\r\n").error().status, 431);
  scanner.restart();
  EXPECT_EQ(scanner.scan("GET / HTTP/1.1\r\na: " + std::string(100, 'x')).error().status, 431);
  scanner.restart();
  EXPECT_TRUE(scanner.scan("GET / HTTP/1.1\r\na: 1\r\nb: 2\r\n\r\n"));
}

TEST(RequestHead, IsTakenApart) {
  const auto head = parse_request_head("POST http://a/b?c HTTP/1.0\r\nHost: a\r\nX-Y:\t v w \r\nEmpty:\r\n\r\n");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->method, "POST");
  EXPECT_EQ(head->target, "http://a/b?c");
  EXPECT_EQ(head->minor, 0);
  ASSERT_EQ(head->fields.size(), 3U);
  EXPECT_EQ(head->fields[1].value, "v w");
  EXPECT_EQ(head->fields[2].value, "");
}

TEST(ResponseHead, ToleratesAMissingReasonOnly) {
  EXPECT_EQ(parse_response_head("HTTP/1.1 200\r\n\r\n")->status, 200);
  EXPECT_EQ(parse_response_head("HTTP/1.0 404 Not Found\r\n\r\n")->reason, "Not Found");
  for (const char* bad :
       {"HTTP/1.1 20\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "200 OK\r\n\r\n",
        "HTTP/2 200\r\n\r\n", "HTTP/1.1 099 x\r\n\r\n", "HTTP/1.1 -20 x\r\n\r\n", "\r\n\r\n"}) {
    EXPECT_FALSE(parse_response_head(bad)) << bad;
  }
}

TEST(Framing, OfResponses) {
  const auto framing = [](std::string_view head, std::string_view method) {
    return response_framing(*parse_response_head(head), method);
  };
  EXPECT_EQ(framing("HTTP/1.1 200\r\n\r\n", "GET")->kind, Framing::Kind::kUntilClose);
  EXPECT_EQ(framing("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", "GET")->length, 5U);
  EXPECT_EQ(framing("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", "HEAD")->kind, Framing::Kind::kNone);
  EXPECT_EQ(framing("HTTP/1.1 304\r\nContent-Length: 5\r\n\r\n", "GET")->kind, Framing::Kind::kNone);
  EXPECT_EQ(framing("HTTP/1.1 204\r\n\r\n", "GET")->kind, Framing::Kind::kNone);
  EXPECT_EQ(framing("HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n", "GET")->kind, Framing::Kind::kChunked);
  EXPECT_FALSE(framing("HTTP/1.1 200\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "GET"));
  EXPECT_FALSE(framing("HTTP/1.1 200\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "GET"));
  EXPECT_FALSE(framing("HTTP/1.0 200\r\nTransfer-Encoding: chunked\r\n\r\n", "GET"));
  EXPECT_FALSE(framing("HTTP/1.1 200\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "GET"));
}

struct Copied {
  bool fine;
  bool done;
  std::string out;
  size_t taken;
};

Copied copy_in_pieces(std::string_view in, size_t piece, ChunkedCopier::Extensions extensions,
                      ChunkedCopier::Output output = ChunkedCopier::Output::kChunked) {
  ChunkedCopier copier(extensions, output);
  Copied result{true, false, {}, 0};
  while (!in.empty() && !copier.done()) {
    const auto taken = copier.copy(in.substr(0, piece), result.out, SIZE_MAX);
    if (!taken) return {false, false, {}, 0};
    result.taken += *taken;
    in.remove_prefix(*taken);
  }
  result.done = copier.done();
  return result;
}

TEST(ChunkedCopier, WritesTheCanonicalSpellingAndStopsAtItsEnd) {
  const std::string in = "005\r\nhello\r\nA;x=\"y\"\r\n0123456789\r\n1 \r\n!\r\n0\r\nSum: 1\r\nHost: x\r\n\r\nGET";
  const std::string out = "5\r\nhello\r\na\r\n0123456789\r\n1\r\n!\r\n0\r\nSum: 1\r\n\r\n";
  for (const size_t piece : {1UL, 2UL, 9UL, 1000UL}) {
    const Copied copied = copy_in_pieces(in, piece, ChunkedCopier::Extensions::kDrop);
    EXPECT_TRUE(copied.fine && copied.done);
    EXPECT_EQ(copied.out, out);
    EXPECT_EQ(copied.taken, in.size() - 3);
    EXPECT_EQ(copy_in_pieces(in, piece, ChunkedCopier::Extensions::kDrop, ChunkedCopier::Output::kPlain).out,
              "hello0123456789!");
  }
}

// More than 32 bits can count.
TEST(BodyCopier, PassesBodiesBeyondFourGibibytes) {
  constexpr uint64_t kLength = (uint64_t{1} << 32U) + 5;
  const std::string piece(size_t{4} << 20U, 'x');
  for (const bool chunked : {false, true}) {
    const Framing framing{chunked ? Framing::Kind::kChunked : Framing::Kind::kLength, kLength};
    BodyCopier copier(framing, ChunkedCopier::Extensions::kRefuse, ChunkedCopier::Output::kPlain);
    std::string out;
    const std::string_view begin = chunked ? "100000005\r\n" : "";
    EXPECT_EQ(copier.copy(begin, out, piece.size()).value_or(99), begin.size());
    uint64_t passed = 0;
    while (passed < kLength) {
      out.clear();
      const auto taken = copier.copy(std::string_view(piece).substr(0, kLength - passed), out, piece.size());
      ASSERT_TRUE(taken && *taken > 0);
      ASSERT_EQ(out.size(), *taken);
      EXPECT_FALSE(copier.done() && passed + *taken < kLength);
      passed += *taken;
    }
    EXPECT_TRUE(copier.copy(chunked ? "\r\n0\r\n\r\n" : "", out, piece.size()));
    EXPECT_TRUE(copier.done());
  }
}

TEST(ChunkedCopier, RefusesOtherSpellings) {
  for (const char* in : {"\r\n", "x\r\n", "-1\r\n", "+1\r\na", "0x1\r\na", "1\na", "1\r\nab", "1\r\na\n", "1\r\na\r\r",
                         "1;ext\r\na\r\n", "1 \r\na\r\n", "1\ra", "1000000000000000\r\n", "0\r\nbad header\r\n",
                         "0\r\nA: 1\n\r\n", "0\r\n A: 1\r\n\r\n", "0\r\nA : 1\r\n\r\n", "0\r\nA: \x01\r\n\r\n"}) {
    EXPECT_FALSE(copy_in_pieces(in, 1, ChunkedCopier::Extensions::kRefuse).fine) << in;
  }
  EXPECT_FALSE(copy_in_pieces("1;\x01\r\na\r\n", 1, ChunkedCopier::Extensions::kDrop).fine);
  EXPECT_FALSE(copy_in_pieces("1;\na\r\n", 1, ChunkedCopier::Extensions::kDrop).fine);
  EXPECT_FALSE(copy_in_pieces("1;" + std::string(9000, 'x'), 100, ChunkedCopier::Extensions::kDrop).fine);
  EXPECT_FALSE(copy_in_pieces("0\r\nA: " + std::string(9000, 'x'), 100, ChunkedCopier::Extensions::kDrop).fine);
}

TEST(BodyCopier, NeverTakesMoreThanItsLength) {
  BodyCopier body({Framing::Kind::kLength, 5}, ChunkedCopier::Extensions::kRefuse, ChunkedCopier::Output::kChunked);
  std::string out;
  EXPECT_EQ(*body.copy("hel", out, 100), 3U);
  EXPECT_FALSE(body.end());  // cut off
  EXPECT_EQ(*body.copy("loGET", out, 100), 2U);
  EXPECT_TRUE(body.done());
  EXPECT_EQ(out, "hello");
}

TEST(BodyCopier, StopsAtTheBuffersLimit) {
  BodyCopier body({Framing::Kind::kUntilClose, 0}, ChunkedCopier::Extensions::kRefuse, ChunkedCopier::Output::kChunked);
  std::string out;
  EXPECT_EQ(*body.copy("0123456789", out, 4), 4U);
  EXPECT_EQ(*body.copy("456789", out, 4), 0U);
  EXPECT_FALSE(body.done());
  EXPECT_TRUE(body.end());
}

TEST(Authority, IsStrict) {
  EXPECT_EQ(parse_authority("a.example:8080")->port, 8080);
  EXPECT_EQ(parse_authority("[::1]:80")->host, "[::1]");
  EXPECT_FALSE(parse_authority("a.example")->port);
  for (const char* bad : {"", ":80", "a:", "a:0", "a:080", "a:65536", "a:99999999999", "a:+80", "a:80 ", "a:8 0",
                          "u@a:80", "[::1", "[::1]80", "::1:80", "a:80:80", "[::1]:"}) {
    EXPECT_FALSE(parse_authority(bad)) << bad;
  }
}

TEST(AbsoluteTarget, GivesTheOriginForm) {
  const auto origin = [](std::string_view target, std::string_view method) {
    return parse_absolute_target(target, method)->origin_form;
  };
  EXPECT_EQ(origin("http://a", "GET"), "/");
  EXPECT_EQ(origin("http://a", "OPTIONS"), "*");
  EXPECT_EQ(origin("HTTP://a?q", "GET"), "/?q");
  EXPECT_EQ(origin("http://a:81/p?q=http://b", "GET"), "/p?q=http://b");
  for (const char* bad : {"/", "*", "a", "a:80", "http:/a", "http:a", "https://a/", "ftp://a/", "http://", "http:///p",
                          "http://u:p@a/", "http://a/#f", "http://a\\@b/", "http://a:x/", "http://?q"}) {
    EXPECT_FALSE(parse_absolute_target(bad, "GET")) << bad;
  }
}

TEST(HopByHop, GoesByNameAndByConnection) {
  const auto head = parse_request_head("GET http://a/ HTTP/1.1\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\n\r\n");
  EXPECT_TRUE(is_hop_by_hop(head->fields, "x-mine"));
  EXPECT_TRUE(is_hop_by_hop(head->fields, "Proxy-Authorization"));
  EXPECT_TRUE(is_hop_by_hop(head->fields, "TE"));
  EXPECT_FALSE(is_hop_by_hop(head->fields, "Authorization"));
  EXPECT_TRUE(check_connection_options(head->fields));
}

}  // namespace
}  // namespace belljar::net
