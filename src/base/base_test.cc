#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/path.h"
#include "base/text.h"

namespace belljar::base {
namespace {

TEST(Error, NamesOperationSubjectReasonAndHint) {
  const Error error = system_error("mount", "/work", EPERM, "see 'belljar doctor'").error();
  EXPECT_EQ(error.message(), "mount '/work': Operation not permitted (see 'belljar doctor')");
  EXPECT_EQ(refuse("parse", "", "nothing there").error().message(), "parse: nothing there");
}

TEST(Error, EscapesAnUntrustedSubject) {
  EXPECT_EQ(refuse("open", "a\x1b[2Jb\n", "no").error().message(), "open 'a\\x1b[2Jb\\n': no");
}

TEST(Text, EscapeKeepsPrintableUtf8AndShowsTheRest) {
  EXPECT_EQ(escape("plain ünï 漢"), "plain ünï 漢");
  EXPECT_EQ(escape(std::string_view("\0\x7f\xff", 3)), "\\x00\\x7f\\xff");
  EXPECT_EQ(escape("\xc2\x9b"), "\\x9b");                // C1 CSI
  EXPECT_EQ(escape("\xe2\x80\xae"), "\\u{202e}");        // right-to-left override
  EXPECT_EQ(escape("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(escape("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
}

TEST(Text, ShellQuoteQuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(shell_quote("a/b-c.d"), "a/b-c.d");
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
}

TEST(Text, NearestFindsATypoAndNotAStranger) {
  EXPECT_EQ(nearest("netwrok", {"network", "mode"}), "network");
  EXPECT_EQ(nearest("zzz", {"network", "mode"}), "");
}

TEST(Text, ParseUintIsStrict) {
  uint64_t value = 0;
  EXPECT_TRUE(parse_uint("18446744073709551615", value));
  EXPECT_FALSE(parse_uint("18446744073709551616", value));
  EXPECT_FALSE(parse_uint("+1", value));
  EXPECT_FALSE(parse_uint(" 1", value));
  EXPECT_FALSE(parse_uint("1x", value));
  EXPECT_FALSE(parse_uint("", value));
}

TEST(Path, NormalFormIsWorkedOutOnTheText) {
  EXPECT_EQ(normal_path("/a//b/./c/"), "/a/b/c");
  EXPECT_EQ(normal_path("/a/../b"), "/b");
  EXPECT_EQ(normal_path("/"), "/");
  EXPECT_EQ(normal_path("/.."), "");
  EXPECT_EQ(normal_path("a"), "");
  EXPECT_EQ(normal_path(std::string_view("/a\0b", 4)), "");
}

TEST(Path, WithinComparesWholeComponents) {
  EXPECT_TRUE(is_within("/a/b", "/a"));
  EXPECT_TRUE(is_within("/a", "/a"));
  EXPECT_FALSE(is_within("/ab", "/a"));
  EXPECT_TRUE(is_within("/a", "/"));
}

TEST(Io, ReadToEndRefusesMoreThanItsLimit) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  Fd in(ends[0]);
  Fd out(ends[1]);
  ASSERT_TRUE(write_all(out.get(), "0123456789"));
  out.reset();
  const auto text = read_to_end(in.get(), 5, "pipe");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, EFBIG);
}

TEST(Deadline, PassesAndRoundsUp) {
  EXPECT_EQ(Deadline().poll_timeout(), -1);
  EXPECT_TRUE(Deadline::after(std::chrono::nanoseconds(0)).passed());
  EXPECT_EQ(Deadline::after(std::chrono::seconds(-5)).poll_timeout(), 0);
  EXPECT_GT(Deadline::after(std::chrono::hours(1)).poll_timeout(), 3'500'000);
}

TEST(Text, KnowsWhatIsAndWhatIsNot) {
  for (const char* good : {"", "a/b", "\u00e4\u20ac\U0001f600"}) EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"\xff", "\xc0\xaf", "\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

}  // namespace
}  // namespace belljar::base
