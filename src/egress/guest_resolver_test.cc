#include "egress/guest_resolver.h"

#include <gtest/gtest.h>

#include <string>

#include "egress/synthetic_hosts.h"
#include "net/dns.h"
#include "net/dns_bytes.h"
#include "net/test_address.h"
#include "policy/host_rule.h"

namespace belljar::egress {
namespace {

using net::testing::dns_answers;
using net::testing::dns_code;
using net::testing::dns_data;
using net::testing::dns_header;
using net::testing::dns_query;
using net::testing::dns_question;
using net::testing::edns_query;
using net::testing::ip;

enum : uint16_t { kA = 1, kNs = 2, kPtr = 12, kMx = 15, kTxt = 16, kAaaa = 28, kSrv = 33, kSvcb = 64, kHttps = 65 };
constexpr int kNoError = 0;
constexpr int kServFail = 2;
constexpr int kNxDomain = 3;
constexpr int kNotImp = 4;
constexpr int kRefused = 5;

std::vector<policy::HostRule> rules_of(const std::vector<std::string>& texts) {
  std::vector<policy::HostRule> out;
  for (const std::string& text : texts) out.push_back(*policy::parse_host_rule(text, "test"));
  return out;
}

struct Desk {
  explicit Desk(const std::vector<std::string>& allowed, bool v6 = true)
      : rules(rules_of(allowed)), answers(rules, hosts, log, v6) {}
  Rules rules;
  SyntheticHosts hosts;
  Journal log;
  GuestAnswers answers;
};

std::string v4_bytes(const char* text) {
  return net::testing::number(ip(text).v4_value(), 4);
}

TEST(GuestAnswers, AnAllowedHostHasOneAddressOfEachKind) {
  Desk desk({"example.com", "*.wild.example", "db.example:5432"});
  const std::string first = desk.answers.to(dns_query("example.com", kA));
  EXPECT_EQ(dns_code(first), kNoError);
  EXPECT_EQ(dns_answers(first), 1);
  EXPECT_EQ(dns_data(first, 4), v4_bytes("198.18.0.1"));
  EXPECT_EQ(desk.answers.to(dns_query("example.com", kA)), first);
  EXPECT_EQ(dns_data(desk.answers.to(dns_query("EXAMPLE.com", kA)), 4), v4_bytes("198.18.0.1"));
  const std::string v6 = dns_data(desk.answers.to(dns_query("example.com", kAaaa)), 16);
  EXPECT_EQ(v6, "\xfd\x53" + std::string(13, '\0') + "\x01");
  EXPECT_EQ(dns_data(desk.answers.to(dns_query("a.wild.example", kA)), 4), v4_bytes("198.18.0.2"));
  // Allowed on a port that nobody asks a resolver for.
  EXPECT_EQ(dns_data(desk.answers.to(dns_query("db.example", kA)), 4), v4_bytes("198.18.0.3"));
  EXPECT_TRUE(desk.log.denials().empty());
  EXPECT_EQ(*desk.hosts.at(ip("198.18.0.2")), "a.wild.example");
  EXPECT_EQ(*desk.hosts.at(ip("fd53::3")), "db.example");
}

TEST(GuestAnswers, ADeniedHostIsRefusedAndNoted) {
  Desk desk({"example.com", "*.wild.example", "192.0.2.1"});
  for (const char* host : {"denied.example", "wild.example", "www.example.com", "com"}) {
    for (const uint16_t type : {kA, kAaaa, kHttps, kTxt}) {
      const std::string answer = desk.answers.to(edns_query(host, type));
      EXPECT_EQ(dns_code(answer), kRefused) << host;
      EXPECT_EQ(dns_answers(answer), 0) << host;
    }
  }
  ASSERT_EQ(desk.log.denials().size(), 4U);
  const Denial& denial = desk.log.denials().front();
  EXPECT_EQ(denial.host, "denied.example");
  EXPECT_EQ(denial.port, 0);
  EXPECT_EQ(denial.reason, Reason::kHostNotAllowed);
  EXPECT_EQ(denial.remedy, "--allow-host denied.example");
  EXPECT_EQ(denial.count, 4U);
  EXPECT_EQ(desk.hosts.at(ip("198.18.0.1")), nullptr);
}

TEST(GuestAnswers, NoKeyForAnEncryptedHelloEverArrives) {
  Desk desk({"example.com"});
  for (const uint16_t type : {kHttps, kSvcb, kNs, kMx, kTxt, kSrv}) {
    const std::string answer = desk.answers.to(dns_query("example.com", type));
    EXPECT_EQ(dns_code(answer), kNoError) << type;
    EXPECT_EQ(dns_answers(answer), 0) << type;
  }
  EXPECT_EQ(dns_code(desk.answers.to(dns_query("_443._https.example.com", kHttps))), kNxDomain);
  EXPECT_EQ(dns_code(desk.answers.to(dns_query("_http._tcp.example.com", kSrv))), kNxDomain);
  EXPECT_EQ(dns_code(desk.answers.to(dns_query("_http._tcp.denied.example", kSrv))), kRefused);
  EXPECT_EQ(desk.log.denials().size(), 1U);
}

TEST(GuestAnswers, WithoutIpv6ThereIsNoAddressOfIt) {
  Desk desk({"example.com"}, false);
  const std::string answer = desk.answers.to(dns_query("example.com", kAaaa));
  EXPECT_EQ(dns_code(answer), kNoError);
  EXPECT_EQ(dns_answers(answer), 0);
}

TEST(GuestAnswers, LocalhostIsTheGuestItself) {
  Desk desk({"example.com"});
  EXPECT_EQ(dns_data(desk.answers.to(dns_query("localhost", kA)), 4), v4_bytes("127.0.0.1"));
  EXPECT_EQ(dns_data(desk.answers.to(dns_query("app.localhost", kAaaa)), 16), std::string(15, '\0') + "\x01");
  EXPECT_EQ(dns_answers(desk.answers.to(dns_query("localhost", kMx))), 0);
  EXPECT_TRUE(desk.log.denials().empty());
}

TEST(GuestAnswers, AddressesLeadBackToTheirHosts) {
  Desk desk({"example.com"});
  EXPECT_EQ(dns_code(desk.answers.to(dns_query("1.0.18.198.in-addr.arpa", kPtr))), kNxDomain);
  (void)desk.answers.to(dns_query("example.com", kA));
  const std::string answer = desk.answers.to(dns_query("1.0.18.198.in-addr.arpa", kPtr));
  EXPECT_EQ(dns_data(answer, 13), net::testing::dns_name("example.com"));
  EXPECT_EQ(dns_data(desk.answers.to(dns_query("1.0.0.127.in-addr.arpa", kPtr)), 11),
            net::testing::dns_name("localhost"));
  EXPECT_EQ(dns_code(desk.answers.to(dns_query("1.2.0.192.in-addr.arpa", kPtr))), kNxDomain);
  EXPECT_EQ(dns_code(desk.answers.to(dns_query("lb._dns-sd._udp.0.0.127.in-addr.arpa", kPtr))), kNxDomain);
  EXPECT_TRUE(desk.log.denials().empty());
}

TEST(GuestAnswers, OnlyQuestionsAboutTheInternet) {
  Desk desk({"example.com"});
  const auto with = [&](uint16_t type, uint16_t net_class) {
    return dns_code(desk.answers.to(dns_header(0x0100, 1) + dns_question("example.com", type, net_class)));
  };
  EXPECT_EQ(with(kA, 3), kNotImp);    // CHAOS
  EXPECT_EQ(with(kA, 255), kNotImp);  // any
  EXPECT_EQ(with(255, 1), kNotImp);
  EXPECT_EQ(with(252, 1), kNotImp);   // AXFR
  EXPECT_EQ(with(257, 1), kNoError);  // CAA
}

TEST(GuestAnswers, WhatIsNoHostIsRefused) {
  Desk desk({"example.com"});
  for (const char* name : {"", "-.example", "a_b.example.com", "_tcp"}) {
    EXPECT_EQ(dns_code(desk.answers.to(dns_query(name, kA))), kRefused) << name;
  }
  EXPECT_EQ(dns_code(desk.answers.to(dns_query("192.0.2.1", kA))), kNxDomain);
}

TEST(SyntheticHosts, AreBoundedAndNeverStandForAnother) {
  SyntheticHosts hosts;
  std::vector<SyntheticHosts::Addresses> given;
  for (size_t i = 0; i < SyntheticHosts::kLimit; ++i) given.push_back(*hosts.of(std::to_string(i) + ".example"));
  EXPECT_FALSE(hosts.of("one.more.example"));
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string host = std::to_string(i) + ".example";
    ASSERT_EQ(*hosts.at(given[i].v4), host);
    ASSERT_EQ(*hosts.at(given[i].v6), host);
    ASSERT_TRUE(SyntheticHosts::in_range(given[i].v4) && SyntheticHosts::in_range(given[i].v6));
    ASSERT_EQ(hosts.of(host)->v4, given[i].v4);
  }
}

TEST(SyntheticHosts, OneSpellingOnly) {
  SyntheticHosts hosts;
  (void)hosts.of("example.com");
  ASSERT_NE(hosts.at(ip("fd53::1")), nullptr);
  for (const char* text : {"fd53:1::1", "fd54::1", "fd53::1:0:0:1", "198.18.0.0", "198.18.0.255", "198.18.0.2",
                           "198.20.0.1", "198.19.0.1", "127.0.0.1", "::1"}) {
    EXPECT_EQ(hosts.at(ip(text)), nullptr) << text;
  }
}

TEST(GuestAnswers, AGuestThatInventsHostsHurtsItselfOnly) {
  Desk desk({"*.wild.example", "example.com"});
  (void)desk.answers.to(dns_query("example.com", kA));
  for (size_t i = 0; i + 1 < SyntheticHosts::kLimit; ++i) {
    ASSERT_EQ(dns_code(desk.answers.to(dns_query(std::to_string(i) + ".wild.example", kA))), kNoError);
  }
  EXPECT_EQ(dns_code(desk.answers.to(dns_query("more.wild.example", kA))), kServFail);
  EXPECT_EQ(dns_code(desk.answers.to(dns_query("example.com", kA))), kNoError);
  for (size_t i = 0; i < 2 * DenialLog::kLookups; ++i) (void)desk.answers.to(dns_query(std::to_string(i) + ".no", kA));
  EXPECT_EQ(desk.log.denials().size(), DenialLog::kLookups);
}

}  // namespace
}  // namespace belljar::egress
