#include "policy/host_rule.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace belljar::policy {
namespace {

struct Spelling {
  const char* text;
  const char* canonical;
};

TEST(HostRule, ReadsOneMeaningInOneSpelling) {
  const std::vector<Spelling> cases = {
      {"example.com", "example.com"},
      {"EXAMPLE.Com", "example.com"},
      {"example.com.", "example.com"},
      {"*.Example.com.", "*.example.com"},
      {"localhost", "localhost"},
      {"example.com:5432", "example.com:5432"},
      {"example.com.:5432", "example.com:5432"},
      {"*.example.com:*", "*.example.com:*"},
      {"xn--bcher-kva.example", "xn--bcher-kva.example"},
      {"under_score.example.com", "under_score.example.com"},
      {"r3---sn-x.example.com", "r3---sn-x.example.com"},
      {"3com.example.7up", "3com.example.7up"},
      {"192.0.2.7", "192.0.2.7"},
      {"0.0.0.0:1", "0.0.0.0:1"},
      {"2001:DB8:0:0::1", "2001:db8::1"},
      {"[2001:db8::1]", "2001:db8::1"},
      {"[2001:DB8::0001]:8443", "[2001:db8::1]:8443"},
      {"[::1]:*", "[::1]:*"},
      {"::", "::"},
      {"10.0.0.0/8", "10.0.0.0/8"},
      {"192.0.2.128/25:*", "192.0.2.128/25:*"},
      {"2001:DB8::/32", "2001:db8::/32"},
      {"[FD00::/8]:5432", "[fd00::/8]:5432"},
      {"192.0.2.7/32", "192.0.2.7/32"},
  };
  for (const auto& [text, canonical] : cases) {
    const auto rule = parse_host_rule(text, "here");
    ASSERT_TRUE(rule) << rule.error().message();
    EXPECT_EQ(to_text(*rule), canonical);
    EXPECT_EQ(rule->source, "here");
  }
}

struct Bad {
  std::string text;
  std::string message;
};

const std::string kOddIpv4 =
    "an IPv4 address in a notation that programs read differently (write four decimal numbers without leading zeros, "
    "such as 192.0.2.7)";
const std::string kNotPort = "not a port after ':' (write a number from 1 to 65535, or * for any port)";
const std::string kStar = "holds a '*' that is not the whole first label (write *.example.com)";
const std::string kControl = "holds a control character (write the bare host name)";
const std::string kNotIpv6 =
    "not an IPv6 address (write it as in [2001:db8::1]:443, or 2001:db8::1 for ports 80 and 443)";
const std::string kEmptyLabel = "holds an empty label (write labels separated by single dots)";

TEST(HostRule, RefusesWhatHasNoSingleMeaning) {
  const std::string label(64, 'a');
  std::string name;
  while (name.size() < 254) name += "abcdefg.";
  const std::vector<Bad> cases = {
      {"", "host rule: empty (name a host, such as example.com)"},
      {"exa%6dple.com", "host rule 'exa%6dple.com': holds percent-encoding (write the plain name)"},
      {"me@example.com", "host rule 'me@example.com': holds a user name (write only what follows the '@')"},
      {std::string("a\0b.com", 7), "host rule 'a\\x00b.com': " + kControl},
      {"a\nb.com", "host rule 'a\\nb.com': " + kControl},
      {"a\x7f.com", "host rule 'a\\x7f.com': " + kControl},
      {"a b.com", "host rule 'a b.com': holds a space (write one host per entry)"},
      {"a..com", "host rule 'a..com': " + kEmptyLabel},
      {".com", "host rule '.com': " + kEmptyLabel},
      {"a.com..", "host rule 'a.com..': " + kEmptyLabel},
      {".", "host rule '.': " + kEmptyLabel},
      {label + ".com",
       "host rule '" + label + ".com': holds a label of more than 63 characters (no such name exists in the DNS)"},
      {name + "com", "host rule '" + name + "com': longer than 253 characters (no such name exists in the DNS)"},
      {std::string(600, 'a'),
       "host rule '" + std::string(512, 'a') + "...': longer than any host name (a name has at most 253 characters)"},
      {"-a.com", "host rule '-a.com': holds a label that starts or ends with '-' (no such host name is valid)"},
      {"a-.com", "host rule 'a-.com': holds a label that starts or ends with '-' (no such host name is valid)"},
      {"a,b.com",
       "host rule 'a,b.com': holds a character that no host name has: ',' (letters, digits, '-', '_' and '.' are "
       "allowed)"},
      {"0x7f.1", "host rule '0x7f.1': " + kOddIpv4},
      {"2130706433", "host rule '2130706433': " + kOddIpv4},
      {"0x7f000001", "host rule '0x7f000001': " + kOddIpv4},
      {"010.0.0.1", "host rule '010.0.0.1': " + kOddIpv4},
      {"127.1", "host rule '127.1': " + kOddIpv4},
      {"1.2.3.256", "host rule '1.2.3.256': " + kOddIpv4},
      {"1.2.3.0x4", "host rule '1.2.3.0x4': " + kOddIpv4},
      {"1.2.3.4.5", "host rule '1.2.3.4.5': " + kOddIpv4},
      {"example.0x", "host rule 'example.0x': " + kOddIpv4},
      {"1.2.3.4.", "host rule '1.2.3.4.': an address with a trailing dot (write it without the dot)"},
      {"*.1.2.3.4", "host rule '*.1.2.3.4': a wildcard over an address (name the address itself)"},
      {"fe80::1%eth0",
       "host rule 'fe80::1%eth0': an address with a zone id, which names an interface of one machine (write the "
       "address without '%')"},
      {"[fe80::1%25eth0]:80",
       "host rule '[fe80::1%25eth0]:80': an address with a zone id, which names an interface of one machine (write "
       "the address without '%')"},
      {"::ffff:1.2.3.4", "host rule '::ffff:1.2.3.4': an IPv4 address written as IPv6 (write the IPv4 address itself)"},
      {"1:2:3", "host rule '1:2:3': " + kNotIpv6},
      {"[1.2.3.4]", "host rule '[1.2.3.4]': " + kNotIpv6},
      {"[::1", "host rule '[::1': a '[' without its ']' (write it as in [2001:db8::1]:443)"},
      {"[::1]443", "host rule '[::1]443': text after ']' that is not a port (write [2001:db8::1]:443)"},
      {"b\xc3\xbc"
       "cher.example",
       "host rule 'b\xc3\xbc"
       "cher.example': holds a letter outside ASCII (write the A-label form, such as xn--bcher-kva.example)"},
      {"https://example.com/",
       "host rule 'https://example.com/': a URL, not a host (write only the host, without scheme and path)"},
      {"example.com/x",
       "host rule 'example.com/x': holds a path, query or fragment (rules are for whole hosts: write only the host)"},
      {"example.com\\x",
       "host rule 'example.com\\x': holds a path, query or fragment (rules are for whole hosts: write only the host)"},
      {"*", "host rule '*': every host (name the hosts, or use network = \"allow\")"},
      {"*:443", "host rule '*:443': every host (name the hosts, or use network = \"allow\")"},
      {"a.*.com", "host rule 'a.*.com': " + kStar},
      {"a*.com", "host rule 'a*.com': " + kStar},
      {"*.*.com", "host rule '*.*.com': " + kStar},
      {"**.com", "host rule '**.com': " + kStar},
      {"example.com:", "host rule 'example.com:': " + kNotPort},
      {"example.com:0", "host rule 'example.com:0': " + kNotPort},
      {"example.com:65536", "host rule 'example.com:65536': " + kNotPort},
      {"example.com:080", "host rule 'example.com:080': " + kNotPort},
      {"example.com:+80", "host rule 'example.com:+80': " + kNotPort},
      {"example.com:https", "host rule 'example.com:https': " + kNotPort},
      {":443", "host rule ':443': a port without a host (write HOST:PORT)"},
  };
  for (const auto& [text, message] : cases) {
    const auto rule = parse_host_rule(text, "");
    ASSERT_FALSE(rule) << text << " became " << to_text(*rule);
    EXPECT_EQ(rule.error().message(), message);
  }
}

TEST(CanonicalHost, FollowsTheSameRulesWithoutPortAndWildcard) {
  EXPECT_EQ(canonical_host("EXAMPLE.com.").value(), "example.com");
  EXPECT_EQ(canonical_host("[2001:DB8:0::1]").value(), "2001:db8::1");
  EXPECT_EQ(canonical_host("2001:DB8:0::1").value(), "2001:db8::1");
  EXPECT_EQ(canonical_host("192.0.2.7").value(), "192.0.2.7");
  for (const char* bad : {"", "*.example.com", "*", "example.com:443", "[::1]:443", "0x7f.1", "2130706433", "a@b.com",
                          "::ffff:127.0.0.1", "127.0.0.1.", "exa%6dple.com", "https://x/", "1.2.3.08"}) {
    EXPECT_FALSE(canonical_host(bad)) << bad;
  }
}

bool allows(const char* rule, const char* host, uint16_t port) {
  return matches(parse_host_rule(rule, "").value(), canonical_host(host).value(), port);
}

// E1 of shared/cases/egress.md.
TEST(HostRule, MatchesWhatItNamesAndNothingElse) {
  EXPECT_TRUE(allows("example.com", "example.com", 443));
  EXPECT_TRUE(allows("example.com", "EXAMPLE.COM.", 80));
  EXPECT_FALSE(allows("example.com", "example.com", 22));
  EXPECT_FALSE(allows("example.com", "www.example.com", 443));
  EXPECT_FALSE(allows("example.com", "badexample.com", 443));
  EXPECT_FALSE(allows("example.com", "example.com.evil.test", 443));
  EXPECT_TRUE(allows("*.example.com", "www.example.com", 443));
  EXPECT_TRUE(allows("*.example.com", "a.b.example.com", 443));
  EXPECT_FALSE(allows("*.example.com", "example.com", 443));
  EXPECT_FALSE(allows("*.example.com", "badexample.com", 443));
  EXPECT_TRUE(allows("example.com:5432", "example.com", 5432));
  EXPECT_FALSE(allows("example.com:5432", "example.com", 443));
  EXPECT_TRUE(allows("example.com:*", "example.com", 22));
  EXPECT_TRUE(allows("2001:DB8::1", "[2001:db8:0:0::1]", 443));
  EXPECT_FALSE(allows("192.0.2.7", "192.0.2.8", 443));
  EXPECT_TRUE(allows("192.0.2.128/25", "192.0.2.255", 443));
  EXPECT_FALSE(allows("192.0.2.128/25", "192.0.2.127", 443));
  EXPECT_FALSE(allows("192.0.2.0/24", "192.0.2.7.example", 443));
  EXPECT_TRUE(allows("[2001:db8::/31]:*", "2001:db9::1", 22));
  EXPECT_FALSE(allows("2001:db8::/31", "2001:dba::1", 443));
  EXPECT_FALSE(allows("2000::/3", "32.0.0.1", 443)) << "the bits alone do not make an address";
  EXPECT_TRUE(matches(parse_deny_rule("example.com", "").value(), "example.com", 22)) << "denied on every port";
  EXPECT_FALSE(matches(HostRule{}, "", 443));
}

// Text near the edge of the grammar: drawn from pieces that matter to the parser.
rc::Gen<std::string> near_hosts() {
  const auto piece = rc::gen::elementOf(
      std::vector<std::string>{"a",  "B",    "example", "com", ".", "..",   "*",    "*.",       ":",
                               ":*", ":80",  "::",      "[",   "]", "0x7f", "1",    "255",      "256",
                               "08", "-",    "_",       "%",   "@", "/",    "xn--", "\xc3\xbc", std::string(1, '\0'),
                               " ",  "ffff", "fe80"});
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece), [](const std::vector<std::string>& parts) {
    std::string out;
    for (const auto& part : parts) out += part;
    return out;
  });
}

std::string pick(std::vector<std::string> choices) {
  return *rc::gen::elementOf(std::move(choices));
}

// Mostly valid: the right shape, drawn in every spelling the parser folds into one.
std::string drawn_host() {
  std::string out = pick({"", "", "*."});
  const auto labels = *rc::gen::resize(
      4, rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
             std::vector<std::string>{"a", "B", "eXample", "com", "x_y", "r3---x", "xn--a", "7up", "9"}))));
  for (const auto& label : labels) out += (out.empty() || out.ends_with('.') ? "" : ".") + label;
  return out + pick({"", "", "."});
}

std::string drawn_text() {
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      return *near_hosts();
    case 1:
      return *rc::gen::string<std::string>();
    case 2:
      return pick({"10.0.0.0/8", "1.2.3.4/32", "[fe80::/10]", "2001:DB8::/32", "1.2.3.4/8"}) + pick({"", ":*", ":1"});
    case 3:
      return pick({"1.2.3.4", "::1", "[::1]", "[2001:DB8:0::A]", "FE80::", "[1::2%3]"}) + pick({"", ":*", ":1"});
    default:
      return drawn_host() + pick({"", "", ":*", ":65535", ":0"});
  }
}

RC_GTEST_PROP(HostRule, CanonicalTextReadsBackAsItself, ()) {
  const std::string text = drawn_text();
  const auto rule = parse_host_rule(text, "");
  RC_CLASSIFY(rule.has_value(), "accepted");
  if (!rule) return;
  const auto again = parse_host_rule(to_text(*rule), "");
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == *rule);
  RC_ASSERT(to_text(*again) == to_text(*rule));
}

RC_GTEST_PROP(CanonicalHost, IsIdempotentAndAgreesWithTheRule, ()) {
  const std::string text = drawn_text();
  const auto host = canonical_host(text);
  RC_CLASSIFY(host.has_value(), "accepted");
  if (!host) return;
  RC_ASSERT(canonical_host(*host).value() == *host);
  const auto rule = parse_host_rule(text, "");
  RC_ASSERT(rule.has_value());
  RC_ASSERT(matches(*rule, *host, 443));
  RC_ASSERT(rule->pattern == *host);
}

// Two different hosts under one rule: only a wildcard or a range does that.
RC_GTEST_PROP(HostRule, MatchesOneHostUnlessItIsAWildcardOrARange, ()) {
  const auto rule = parse_host_rule(drawn_text(), "");
  if (!rule) return;
  const bool several = rule->pattern.starts_with("*.") || rule->pattern.find('/') != std::string::npos;
  std::vector<std::string> matched;
  for (int i = 0; i < 8; ++i) {
    const auto host = canonical_host(i == 0 ? rule->pattern : drawn_host());
    if (host && matches_host(*rule, *host)) matched.push_back(*host);
  }
  RC_CLASSIFY(matched.size() > 1, "several hosts");
  if (several) return;
  for (const std::string& host : matched) RC_ASSERT(host == rule->pattern);
}

TEST(HostRule, RefusesRangesThatAreNone) {
  const auto message = [](const char* text) {
    const auto rule = parse_host_rule(text, "");
    return rule ? "accepted" : rule.error().message();
  };
  EXPECT_TRUE(std::string(message("10.0.0.1/8")).contains("write 10.0.0.0/8, or the address alone"));
  EXPECT_TRUE(std::string(message("10.0.0.0/33")).contains("not a range of addresses"));
  EXPECT_TRUE(std::string(message("10.0.0.0/08")).contains("not a range of addresses"));
  EXPECT_TRUE(std::string(message("0.0.0.0/0")).contains("every host"));
  EXPECT_TRUE(std::string(message("::/0")).contains("every host"));
  EXPECT_TRUE(std::string(message("127.0.0.0/8")).contains("grant one port of it by host_ports"));
  EXPECT_TRUE(std::string(message("10.0.0/8")).contains("notation that programs read differently"));
  EXPECT_TRUE(std::string(message("::ffff:10.0.0.0/104")).contains("an IPv4 address written as IPv6"));
  EXPECT_TRUE(std::string(message("example.com/24")).contains("holds a path"));
  EXPECT_TRUE(std::string(message("[10.0.0.0/8")).contains("a '[' without its ']'"));
}

}  // namespace
}  // namespace belljar::policy
