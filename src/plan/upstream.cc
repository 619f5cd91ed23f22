#include "plan/upstream.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "policy/host_rule.h"
#include "policy/policy.h"

namespace belljar::plan {
namespace {

constexpr std::string_view kKey = "isolation.upstream_proxy";

using Environment = std::map<std::string, std::string, std::less<>>;

const std::string* first_of(const Environment& environment, std::initializer_list<std::string_view> names,
                            std::string_view& found) {
  for (const std::string_view name : names) {
    const auto at = environment.find(name);
    if (at == environment.end() || at->second.empty()) continue;
    found = name;
    return &at->second;
  }
  return nullptr;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// RFC 3986, section 2.1; what is no escape stays.
std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    out += escape ? static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])) : text[i];
    if (escape) i += 2;
  }
  return out;
}

// RFC 4648, section 4.
std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8U | (at + i < bytes.size() ? static_cast<uint8_t>(bytes[at + i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) {
      out += at + i > bytes.size() ? '=' : kDigits[group >> (18U - 6U * i) & 63U];
    }
  }
  return out;
}

// A name stands for its subdomains too, whether it is written with a dot or a wildcard in front or without.
std::vector<std::string> direct_hosts(std::string_view list) {
  std::vector<std::string> out;
  for (std::string_view entry : base::split(list, ',')) {
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (entry == "*") out.emplace_back(entry);
    if (entry.starts_with("*.")) entry.remove_prefix(2);
    if (entry.starts_with('.')) entry.remove_prefix(1);
    // What other programs read in some way of their own (ports, ranges) is left to the proxy.
    if (auto host = policy::canonical_host(entry)) out.push_back(std::move(*host));
  }
  return out;
}

}  // namespace

base::Result<std::optional<Upstream>> make_upstream(const std::string& setting, const Environment& environment) {
  if (setting.empty()) return std::nullopt;
  std::string_view source = kKey;
  std::string_view url = setting;
  Upstream out;
  if (setting == policy::kUpstreamOfEnvironment) {
    const std::string* said = first_of(environment, {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}, source);
    if (said == nullptr) return std::nullopt;
    url = *said;
    std::string_view name;
    const std::string* direct = first_of(environment, {"no_proxy", "NO_PROXY"}, name);
    if (direct != nullptr) out.direct = direct_hosts(*direct);
  }
  const auto refuse = [&](std::string_view reason) {
    return base::refuse(kKey, source == kKey ? setting : std::string(source), std::string(reason) + ", refusing",
                        "an HTTP proxy is meant: http://[USER:PASSWORD@]HOST:PORT");
  };
  if (const size_t scheme = url.find("://"); scheme != std::string_view::npos) {
    if (url.substr(0, scheme) != "http") return refuse("it is not spoken to in plain HTTP");
    url.remove_prefix(scheme + 3);
  }
  if (url.ends_with('/')) url.remove_suffix(1);
  if (const size_t at = url.rfind('@'); at != std::string_view::npos) {
    out.authorization = "Basic " + base64(percent_decoded(url.substr(0, at)));
    url.remove_prefix(at + 1);
  }
  const size_t colon = url.rfind(':');
  uint64_t port = 0;
  if (colon == std::string_view::npos || !base::parse_uint(url.substr(colon + 1), port) || port == 0 ||
      port > UINT16_MAX) {
    return refuse("it names no port");
  }
  auto host = policy::canonical_host(url.substr(0, colon));
  if (!host) return refuse("its host has no single meaning");
  out.host = std::move(*host);
  out.port = static_cast<uint16_t>(port);
  return out;
}

std::string to_text(const Upstream& upstream) {
  const bool v6 = upstream.host.contains(':');
  return (v6 ? "[" : "") + upstream.host + (v6 ? "]" : "") + ":" + std::to_string(upstream.port);
}

}  // namespace belljar::plan
