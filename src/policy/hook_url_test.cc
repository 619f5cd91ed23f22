#include "policy/hook_url.h"

#include <gtest/gtest.h>

#include "policy/merge.h"

namespace belljar::policy {
namespace {

TEST(HookUrl, IsReadWholeAndWrittenInOneSpelling) {
  const auto url = parse_hook_url("HTTP://Control.Example.:8080/api/hooks?session=7");
  ASSERT_TRUE(url) << url.error().reason;
  EXPECT_EQ(url->host, "control.example");
  EXPECT_EQ(url->port, 8080);
  EXPECT_EQ(url->target, "/api/hooks?session=7");
  EXPECT_EQ(canonical_hook_url("http://LOCALHOST:80"), "http://localhost/");
  EXPECT_EQ(canonical_hook_url("http://[::1]:7777/hook"), "http://[::1]:7777/hook");
  EXPECT_EQ(canonical_hook_url("http://127.0.0.1:7777/hook"), "http://127.0.0.1:7777/hook");
  EXPECT_FALSE(url->tls);
  EXPECT_EQ(canonical_hook_url("HTTPS://Control.Example:443/x"), "https://control.example/x");
  EXPECT_EQ(canonical_hook_url("https://[::1]:80/x"), "https://[::1]:80/x");
  const auto secure = parse_hook_url("https://control.example/x");
  ASSERT_TRUE(secure);
  EXPECT_TRUE(secure->tls);
  EXPECT_EQ(secure->port, 443);
  EXPECT_EQ(hook_url_in_guest(*secure), "http://hook.belljar/x");
  EXPECT_EQ(hook_url_in_guest(*url), "http://hook.belljar/api/hooks?session=7");
}

TEST(HookUrl, RefusesWhatHasNoSingleMeaning) {
  for (const char* text : {"",
                           "hook",
                           "https://",
                           "https://a.test/a/../b",
                           "httpss://a.test/",
                           "ftp://a.test/",
                           "http://",
                           "http://u:p@a.test/",
                           "http://a.test:0/",
                           "http://a.test:99999/",
                           "http://a.test:08/",
                           "http://a.test/a/../b",
                           "http://a.test//b",
                           "http://a.test/%2e%2e/b",
                           "http://a.test/a%2Fb",
                           "http://a.test/a\\b",
                           "http://a.test/a b",
                           "http://a.test/a\r\nX: y",
                           "http://a.test/#x",
                           "http://127.1/",
                           "http://[::ffff:127.0.0.1]/",
                           "http://*.test/",
                           "http://host.belljar/",
                           "http://hook.belljar/"}) {
    EXPECT_FALSE(parse_hook_url(text)) << text;
  }
}

TEST(HookUrl, BecomesTwoRulesForOneRequest) {
  Policy policy = built_in("");
  policy.hook.url = "http://127.0.0.1:7777/hook";
  const auto rules = session_rules(policy);
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].id, "hook:127.0.0.1:7777");
  EXPECT_EQ(rules[1].pattern, kHookName);
  for (const HostRule& rule : rules) {
    EXPECT_TRUE(rule.hook);
    EXPECT_EQ(rule.methods, std::vector<std::string>{"POST"});
    EXPECT_EQ(rule.paths, std::vector<std::string>{"/hook"});
  }
  // No client of a guest speaks clear text to a port of TLS, nor is a TLS of its own opened.
  policy.hook.url = "https://127.0.0.1:7777/hook";
  const auto secure = session_rules(policy);
  ASSERT_EQ(secure.size(), 1U);
  EXPECT_EQ(secure[0].pattern, kHookName);
  EXPECT_EQ(loopback_port(policy.hook), 0);
  policy.isolation.network = Network::kAllow;
  EXPECT_TRUE(session_rules(policy).empty());
}

}  // namespace
}  // namespace belljar::policy
