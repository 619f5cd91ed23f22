#include "policy/proxy_env.h"

namespace belljar::policy {

std::vector<std::pair<std::string, std::string>> proxy_environment(uint16_t port) {
  const std::string number = std::to_string(port);
  const std::string url = "http://127.0.0.1:" + number;
  // Node compares an entry with URL.hostname, which keeps the brackets of an IPv6 literal; the others want it bare.
  const std::string direct = "localhost,127.0.0.1,::1,[::1]";

  std::vector<std::pair<std::string, std::string>> out;
  // Lower case is the older spelling: curl, and so git, reads only `http_proxy` for http:// (a CGI server would turn
  // a client's `Proxy:` header into HTTP_PROXY), wget reads only lower case, some tools read only upper case.
  for (const auto& [upper, lower] :
       {std::pair{"HTTP_PROXY", "http_proxy"}, {"HTTPS_PROXY", "https_proxy"}, {"ALL_PROXY", "all_proxy"}}) {
    out.emplace_back(upper, url);
    out.emplace_back(lower, url);
  }
  out.emplace_back("NO_PROXY", direct);
  out.emplace_back("no_proxy", direct);

  // Node's own http, https and fetch read the variables above only when told to (22.21, 24.5).
  out.emplace_back("NODE_USE_ENV_PROXY", "1");
  // npm prefers these to a project's .npmrc, which may name a proxy that does not exist in the guest.
  out.emplace_back("npm_config_proxy", url);
  out.emplace_back("npm_config_https_proxy", url);
  out.emplace_back("npm_config_noproxy", direct);
  // Cargo's `http.proxy` in a repository's .cargo/config.toml would win over HTTPS_PROXY; this wins over both.
  out.emplace_back("CARGO_HTTP_PROXY", url);
  // The JVM reads no proxy variable at all. Its list of direct hosts is separated by `|`.
  out.emplace_back("JAVA_TOOL_OPTIONS", "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=" + number +
                                            " -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=" + number +
                                            " -Dhttp.nonProxyHosts=localhost|127.*|[::1]");
  // git over http(s) and pip follow the general variables. PIP_PROXY is left out on purpose: with it pip ignores
  // NO_PROXY, and an index served inside the guest would be asked for outside.
  return out;
}

}  // namespace belljar::policy
