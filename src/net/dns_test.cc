#include "net/dns.h"

#include <gtest/gtest.h>

#include <string>

#include "net/dns_bytes.h"
#include "net/test_address.h"

namespace belljar::net {
namespace {

using testing::dns_answers;
using testing::dns_code;
using testing::dns_header;
using testing::dns_name;
using testing::dns_opt;
using testing::dns_query;
using testing::dns_question;
using testing::edns_query;
using testing::number;
using testing::vector;

constexpr uint16_t kA = 1;

DnsCode problem_of(std::string_view message) {
  const auto query = parse_dns_query(message);
  return query ? query->problem : DnsCode::kServFail;
}

TEST(DnsQuery, ReadsWhatStubResolversSend) {
  const auto query = parse_dns_query(dns_query("WWW.Example.com", kA));
  ASSERT_TRUE(query);
  EXPECT_EQ(query->problem, DnsCode::kNoError);
  EXPECT_EQ(query->id, 0x1234);
  EXPECT_EQ(query->type, kA);
  EXPECT_EQ(query->net_class, 1);
  EXPECT_EQ(query->name, "WWW.Example.com");
  EXPECT_FALSE(query->edns);
  const auto modern = parse_dns_query(edns_query("_https._tcp.example.com", 64));
  ASSERT_TRUE(modern);
  EXPECT_EQ(modern->problem, DnsCode::kNoError);
  EXPECT_TRUE(modern->edns);
  EXPECT_EQ(modern->name, "_https._tcp.example.com");
  EXPECT_EQ(parse_dns_query(dns_query("", 2))->name, "");
}

TEST(DnsQuery, ANameThatNoHostHasIsNone) {
  for (const std::string& label : {std::string("a.b"), std::string("a b"), std::string("\xc3\xbc"),
                                   std::string(1, '\0'), std::string("a/b"), std::string("*")}) {
    const auto query =
        parse_dns_query(dns_header(0x0100, 1) + vector(label, 1) + dns_name("com") + number(kA, 2) + number(1, 2));
    ASSERT_TRUE(query);
    EXPECT_EQ(query->problem, DnsCode::kNoError) << label;
    EXPECT_FALSE(query->name) << label;
  }
}

TEST(DnsQuery, IsNotAnsweredWhenItIsNone) {
  EXPECT_FALSE(parse_dns_query(""));
  EXPECT_FALSE(parse_dns_query(dns_query("example.com", kA).substr(0, 11)));
  EXPECT_FALSE(parse_dns_query(dns_header(0x8180, 1) + dns_question("example.com", kA)));
}

TEST(DnsQuery, HasOneMeaningOrAProblem) {
  const std::string question = dns_question("example.com", kA);
  const std::string head = dns_header(0x0100, 1);
  EXPECT_EQ(problem_of(dns_header(0x0100, 0)), DnsCode::kFormErr);
  EXPECT_EQ(problem_of(dns_header(0x0100, 2) + question + question), DnsCode::kFormErr);
  EXPECT_EQ(problem_of(head + question + "x"), DnsCode::kFormErr);
  EXPECT_EQ(problem_of(head + question + question), DnsCode::kFormErr);
  for (size_t size = head.size(); size < head.size() + question.size(); ++size) {
    EXPECT_EQ(problem_of((head + question).substr(0, size)), DnsCode::kFormErr) << size;
  }
  // Answers and authorities in a question.
  EXPECT_EQ(problem_of(number(1, 2) + number(0x0100, 2) + number(1, 2) + number(1, 2) + number(0, 4) + question),
            DnsCode::kFormErr);
  EXPECT_EQ(problem_of(number(1, 2) + number(0x0100, 2) + number(1, 2) + number(0, 2) + number(1, 2) + number(0, 2) +
                       question),
            DnsCode::kFormErr);
  // Status, notify, update.
  for (const unsigned opcode : {2U, 4U, 5U, 15U}) {
    EXPECT_EQ(problem_of(dns_header(static_cast<uint16_t>(opcode << 11U), 1) + question), DnsCode::kNotImp);
  }
}

TEST(DnsQuery, KnowsNoCompression) {
  const std::string head = dns_header(0x0100, 1);
  const std::string rest = number(kA, 2) + number(1, 2);
  EXPECT_EQ(problem_of(head + "\xc0\x0c" + rest), DnsCode::kFormErr);                     // to itself
  EXPECT_EQ(problem_of(head + vector("www", 1) + "\xc0\x0c" + rest), DnsCode::kFormErr);  // round and round
  EXPECT_EQ(problem_of(head + vector("www", 1) + "\xff\xff" + rest), DnsCode::kFormErr);
  EXPECT_EQ(problem_of(head + "\x40" + std::string(64, 'a') + std::string(1, '\0') + rest), DnsCode::kFormErr);
  EXPECT_EQ(problem_of(head + "\x80" + rest), DnsCode::kFormErr);
}

TEST(DnsQuery, NamesAreNoLongerThanTheyMayBe) {
  const std::string label(63, 'a');
  const std::string three = label + "." + label + "." + label + ".";
  EXPECT_EQ(problem_of(dns_query(three + std::string(61, 'b'), kA)), DnsCode::kNoError);  // 255 bytes
  EXPECT_EQ(problem_of(dns_query(three + std::string(62, 'b'), kA)), DnsCode::kFormErr);
}

TEST(DnsQuery, TakesOneOptRecordAndNothingElse) {
  const std::string question = dns_question("example.com", kA);
  const std::string head = dns_header(0x0100, 1, 1);
  EXPECT_EQ(problem_of(head + question + dns_opt(number(10, 2) + vector("12345678", 2))), DnsCode::kNoError);
  EXPECT_EQ(problem_of(head + question + dns_opt("", 1)), DnsCode::kBadVers);
  EXPECT_EQ(problem_of(head + question + dns_opt("abc")), DnsCode::kFormErr);
  EXPECT_EQ(problem_of(head + question + dns_opt(number(10, 2) + number(9, 2) + "12345678")), DnsCode::kFormErr);
  EXPECT_EQ(problem_of(head + question), DnsCode::kFormErr);
  EXPECT_EQ(problem_of(dns_header(0x0100, 1, 2) + question + dns_opt() + dns_opt()), DnsCode::kFormErr);
  // A signature (TSIG, RFC 8945) is for servers that share a key.
  EXPECT_EQ(
      problem_of(head + question + dns_name("key") + number(250, 2) + number(255, 2) + number(0, 4) + number(0, 2)),
      DnsCode::kFormErr);
  EXPECT_EQ(problem_of(head + question + dns_opt(number(12, 2) + vector(std::string(kMaxDnsQuery, '\0'), 2))),
            DnsCode::kFormErr);
}

TEST(DnsAnswer, RepeatsTheQuestionAsItWasSent) {
  const auto query = parse_dns_query(dns_header(0x0110, 1) + dns_question("ExAmPlE.com", kA));
  const std::string answer = dns_answer(*query, testing::ip("198.18.0.1"), 10);
  EXPECT_EQ(answer, number(0x1234, 2) + number(0x8190, 2) + number(1, 2) + number(1, 2) + number(0, 4) +
                        dns_question("ExAmPlE.com", kA) + number(0xc00c, 2) + number(1, 2) + number(1, 2) +
                        number(10, 4) + vector("\xc6\x12" + std::string(1, '\0') + "\x01", 2));
}

TEST(DnsAnswer, HasAnOptRecordWhenTheQueryHad) {
  const auto query = parse_dns_query(edns_query("example.com", 28));
  const std::string answer = dns_answer(*query, testing::ip("fd53::1"), 10);
  EXPECT_TRUE(answer.ends_with(dns_opt()));
  EXPECT_EQ(dns_answers(answer), 1);
  EXPECT_EQ(answer.substr(10, 2), number(1, 2));
}

TEST(DnsAnswer, TellsOfProblems) {
  const auto broken = parse_dns_query(dns_header(0x0100, 2));
  EXPECT_EQ(dns_answer(*broken, broken->problem), number(0x1234, 2) + number(0x8181, 2) + number(0, 8));
  const auto version = parse_dns_query(dns_header(0, 1, 1) + dns_question("a.example", kA) + dns_opt("", 3));
  const std::string answer = dns_answer(*version, version->problem);
  EXPECT_EQ(dns_code(answer), 0);  // the lower half of 16
  EXPECT_EQ(answer.substr(answer.size() - 6, 1), "\x01");
}

TEST(DnsAnswer, IsNeverTruncated) {
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  const auto query = parse_dns_query(edns_query(longest, 28));
  ASSERT_EQ(query->problem, DnsCode::kNoError);
  EXPECT_LE(dns_answer(*query, testing::ip("fd53::1"), 10).size(), kMaxDnsAnswer);
  // No name that leads back to a host is as long as the host's: the longest of either fits.
  const auto reverse = parse_dns_query(edns_query("1.0.18.198.in-addr.arpa", 12));
  EXPECT_LE(dns_pointer_answer(*reverse, longest, 10).size(), kMaxDnsAnswer);
}

TEST(DnsReverse, ReadsBothKinds) {
  EXPECT_EQ(address_of_reverse_name("1.2.18.198.in-addr.arpa"), testing::ip("198.18.2.1"));
  EXPECT_EQ(address_of_reverse_name("1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.3.5.d.f.ip6.arpa"),
            testing::ip("fd53::1"));
  constexpr const char* kNoDigit = "g.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.3.5.d.f.ip6.arpa";
  for (const char* name : {"2.18.198.in-addr.arpa", "256.2.18.198.in-addr.arpa", "01.2.18.198.in-addr.arpa",
                           "in-addr.arpa", "a.2.18.198.in-addr.arpa", "1.0.ip6.arpa", kNoDigit}) {
    EXPECT_FALSE(address_of_reverse_name(name)) << name;
  }
}

}  // namespace
}  // namespace belljar::net
