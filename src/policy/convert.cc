#include "policy/convert.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policy/host_rule.h"
#include "policy/merge.h"
#include "policy/show.h"
#include "policy/values.h"

namespace belljar::policy {
namespace {

bool is_in_the_short_form(std::string_view setting) {
  return setting.starts_with("isolation.mode = ") || setting.starts_with("isolation.network = ") ||
         setting.starts_with("isolation.docker_image = ") || setting.starts_with("isolation.allow_hosts = ");
}

// The ports that hosts of one pattern are reached on; what `host` alone says is 80 and 443.
struct Ports {
  bool any = false;
  std::set<uint16_t> numbers;

  [[nodiscard]] bool covers(const Ports& other) const {
    return any || (!other.any && std::ranges::includes(numbers, other.numbers));
  }
};

using Hosts = std::map<std::string, Ports>;

void add(Hosts& hosts, const HostRule& rule) {
  Ports& ports = hosts[rule.pattern];
  ports.any = ports.any || rule.any_port;
  if (rule.port) {
    ports.numbers.insert(*rule.port);
  } else if (!rule.ports.empty()) {
    ports.numbers.insert(rule.ports.begin(), rule.ports.end());
  } else if (!rule.any_port) {
    ports.numbers.insert({80, 443});
  }
}

// True when a wildcard of `hosts` says all that `pattern` with `ports` does.
bool covered(const Hosts& hosts, const std::string& pattern, const Ports& ports) {
  for (size_t dot = pattern.find('.', pattern.starts_with("*.") ? 2 : 0); dot != std::string::npos;
       dot = pattern.find('.', dot + 1)) {
    const auto wider = hosts.find("*" + pattern.substr(dot));
    if (wider != hosts.end() && wider->second.covers(ports)) return true;
  }
  return false;
}

std::string host_text(const std::string& pattern, std::optional<uint16_t> port, bool any) {
  HostRule rule;
  rule.pattern = pattern;
  rule.port = port;
  rule.any_port = any;
  return to_text(rule);
}

// Equal behaviour gives equal text: each pattern's ports in one way, and nothing that a wildcard says already.
std::vector<std::string> host_texts(const Hosts& hosts) {
  constexpr uint16_t kHttp = 80;
  constexpr uint16_t kHttps = 443;
  std::vector<std::string> out;
  for (const auto& [pattern, ports] : hosts) {
    if (covered(hosts, pattern, ports)) continue;
    if (ports.any) {
      out.push_back(host_text(pattern, {}, true));
      continue;
    }
    const bool both = ports.numbers.contains(kHttp) && ports.numbers.contains(kHttps);
    if (both) out.push_back(host_text(pattern, {}, false));
    for (const uint16_t port : ports.numbers) {
      if (!both || (port != kHttp && port != kHttps)) out.push_back(host_text(pattern, port, false));
    }
  }
  std::ranges::sort(out);
  return out;
}

// What mode docker runs when no image is named: in the short form the two are one.
constexpr std::string_view kUsualImage = "debian:bookworm-slim";

}  // namespace

ShortForm short_form(const Policy& policy) {
  const Isolation& isolation = policy.isolation;
  Hosts allowed;
  ShortForm out;
  if (isolation.network == Network::kDeny) {
    for (const HostRule& rule : isolation.allow_hosts) {
      // Its text says a host and ports; whatever else a rule says would be lost, and with it a restriction.
      if (rule.has_options()) {
        out.lost.push_back("isolation.allow_hosts = " + quote(to_text(rule)) + " (" + options_text(rule) + ")");
      } else {
        add(allowed, rule);
      }
    }
  }
  const std::vector<std::string> hosts = host_texts(allowed);
  const bool image = isolation.mode == Mode::kDocker && isolation.docker_image != kUsualImage;
  const std::string_view mode = isolation.mode == Mode::kNone ? "" : name_of_value(isolation.mode, kModes);
  out.json = "{\"mode\":" + quote(mode) + ",\"network\":" + quote(name_of_value(isolation.network, kNetworks)) +
             ",\"docker_image\":" + quote(image ? isolation.docker_image : "") + ",\"allow_hosts\":[";
  for (const std::string& host : hosts) out.json += (&host == hosts.data() ? "" : ",") + quote(host);
  out.json += "]}\n";
  const std::vector<std::string> usual = settings_of(built_in(""));
  std::ranges::copy_if(settings_of(policy), std::back_inserter(out.lost), [&](const std::string& setting) {
    return !is_in_the_short_form(setting) && std::ranges::find(usual, setting) == usual.end();
  });
  return out;
}

}  // namespace belljar::policy
