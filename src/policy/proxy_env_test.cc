#include "policy/proxy_env.h"

#include <gtest/gtest.h>

#include <map>

namespace belljar::policy {
namespace {

std::map<std::string, std::string> as_map(uint16_t port) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : proxy_environment(port)) {
    EXPECT_TRUE(out.emplace(name, value).second) << name << " is there twice";
  }
  return out;
}

TEST(ProxyEnvironment, NamesTheGuestsOwnLoopbackInBothCases) {
  const auto env = as_map(3128);
  for (const char* name : {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy",
                           "CARGO_HTTP_PROXY", "npm_config_proxy", "npm_config_https_proxy"}) {
    ASSERT_TRUE(env.contains(name)) << name;
    EXPECT_EQ(env.at(name), "http://127.0.0.1:3128") << name;
  }
  EXPECT_EQ(env.at("NODE_USE_ENV_PROXY"), "1");
}

TEST(ProxyEnvironment, KeepsTheGuestsOwnServersDirect) {
  const auto env = as_map(1);
  for (const char* name : {"NO_PROXY", "no_proxy", "npm_config_noproxy"}) {
    EXPECT_EQ(env.at(name), "localhost,127.0.0.1,::1,[::1]") << name;
  }
  EXPECT_FALSE(env.contains("PIP_PROXY"));  // would make pip ignore NO_PROXY
}

TEST(ProxyEnvironment, TellsTheJvmHostAndPortApart) {
  EXPECT_EQ(as_map(65535).at("JAVA_TOOL_OPTIONS"),
            "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=65535 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=65535 "
            "-Dhttp.nonProxyHosts=localhost|127.*|[::1]");
}

}  // namespace
}  // namespace belljar::policy
