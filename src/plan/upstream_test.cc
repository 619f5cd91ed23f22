#include "plan/upstream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace belljar::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kEnvironment = policy::kUpstreamOfEnvironment;

TEST(Upstream, IsThatOfThePolicy) {
  const auto upstream = make_upstream("http://proxy.corp.test:3128", {{"https_proxy", "http://u:p@other.test:1"}});
  ASSERT_TRUE(upstream && *upstream);
  EXPECT_EQ((*upstream)->host, "proxy.corp.test");
  EXPECT_EQ((*upstream)->port, 3128);
  EXPECT_EQ((*upstream)->authorization, "");
}

TEST(Upstream, IsNoneUnlessThePolicySaysSo) {
  EXPECT_EQ(*make_upstream("", {{"https_proxy", "http://proxy.test:3128"}}), std::nullopt);
  EXPECT_EQ(*make_upstream(kEnvironment, {{"https_proxy", ""}}), std::nullopt);
}

TEST(Upstream, TakesCredentialsAndExceptionsFromTheEnvironment) {
  const auto upstream = make_upstream(kEnvironment, {{"HTTPS_PROXY", "http://us%40er:p%3ass@10.0.0.7:8080/"},
                                                     {"no_proxy", "localhost, .intern.test,*.x.test,b.test:80"}});
  ASSERT_TRUE(upstream && *upstream);
  EXPECT_EQ(to_text(**upstream), "10.0.0.7:8080");
  EXPECT_EQ((*upstream)->authorization, "Basic dXNAZXI6cDpzcw==");
  EXPECT_THAT((*upstream)->direct, ElementsAre("localhost", "intern.test", "x.test"));
}

TEST(Upstream, RefusesWhatIsNoPlainHttpProxyAndQuotesNoCredentials) {
  for (const char* url : {"https://user:secret@proxy.test:443", "socks5://user:secret@proxy.test:1080",
                          "http://user:secret@proxy.test", "http://user:secret@pro xy.test:1", "http://u:secret@:1"}) {
    const auto upstream = make_upstream(kEnvironment, {{"https_proxy", url}});
    ASSERT_FALSE(upstream) << url;
    EXPECT_THAT(upstream.error().message(), HasSubstr("https_proxy"));
    EXPECT_THAT(upstream.error().message(), Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace belljar::plan
